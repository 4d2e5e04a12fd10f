import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { cacheResponses } from '../../capabilities/cache-responses.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { fallback } from '../../capabilities/fallback.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../state/event.ts'
import type { LanguageModel } from '../state/inference.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { AgentError, type ErrorCode } from '../../errors.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Use } from '../agent/capability.ts'
import { explain } from '../explain/explain.ts'
import { explanation } from '../explain/explanation.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const again = retry({ backoffMs: 0 })
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
const call: ScriptedTurn = { toolCalls: [{ name: 'work', args: { a: 1 } }] }

function failing(message = 'busy', code: ErrorCode = 'MODEL_OVERLOADED'): ScriptedTurn {
  return { error: new AgentError(code, message) }
}

function agentOn(script: Script | LanguageModel, ...use: readonly Use[]) {
  return createAgent({ model: 'infer' in script ? script : scriptedModel(script), use: [work, ...use] })
}

/** The events of model calls, shortened. */
function callsIn(events: readonly AgentEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === 'inferenceStarted') return [`${event.step}: ${event.attempt} ${event.model}`]
    if (event.type === 'inferenceFailed') return [`${event.step}: ${event.attempt} ${event.model} ${event.error.code}`]
    return event.type === 'retracted' ? ['retracted'] : []
  })
}

async function watch(script: Script | LanguageModel, ...use: readonly Use[]) {
  return recordEvents(agentOn(script, ...use).stream('go'))
}

function attemptsOf(run: Run): readonly string[] {
  return explanation(run).failedAttempts.map(({ step, message }) => `${step}: ${message}`)
}

// ── events of model calls

test('every failed model call is reported with its attempt number, model and error', async () => {
  const b = scriptedModel([failing('slow', 'MODEL_TIMED_OUT'), 'Done.'], { modelId: 'b' })
  const { events } = await watch([failing(), failing()], retry({ maxRetries: 1, backoffMs: 0 }), fallback([b]))
  assert.deepEqual(callsIn(events), [
    '0: 1 scripted/script',
    '0: 1 scripted/script MODEL_OVERLOADED',
    '0: 2 scripted/script',
    '0: 2 scripted/script MODEL_OVERLOADED',
    '0: 3 scripted/b',
    '0: 3 scripted/b MODEL_TIMED_OUT',
    '0: 4 scripted/b',
  ])
})

test('a failure is reported with the message of the model; an error without a code is MODEL_FAILED', async () => {
  const { of } = await watch([{ error: 'boom' }])
  assert.deepEqual(
    of('inferenceFailed').map(({ error }) => error),
    [{ code: 'MODEL_FAILED', message: 'boom' }],
  )
})

test('attempts are numbered within a step, whichever hook makes them', async () => {
  const script = [failing(), failing(), call, failing(), 'Done.']
  const { events } = await watch(script, errorPolicy({ backoffMs: 0 }))
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'inferenceStarted' ? [[event.step, event.attempt]] : [])),
    [
      [0, 1],
      [0, 2],
      [0, 3],
      [1, 1],
      [1, 2],
    ],
  )
})

test('inferenceStarted comes after stepStarted and before any text', async () => {
  const { types } = await watch(['Done.'])
  const order = types.filter((type) => ['stepStarted', 'inferenceStarted', 'text', 'responded'].includes(type))
  assert.deepEqual(order, ['stepStarted', 'inferenceStarted', 'text', 'responded'])
})

test('the text of a failed attempt is retracted before the next attempt starts', async () => {
  const error = new AgentError('MODEL_UNREACHABLE', 'cut')
  const { events } = await watch([{ chunks: ['Half'], error }, 'Done.'], again)
  assert.deepEqual(callsIn(events), [
    '0: 1 scripted/script',
    '0: 1 scripted/script MODEL_UNREACHABLE',
    'retracted',
    '0: 2 scripted/script',
  ])
})

test('a cached response and a call that a guard blocked are not reported as model calls', async () => {
  const agent = agentOn(['Done.'], cacheResponses())
  await agent.run('go')
  assert.deepEqual(callsIn((await recordEvents(agent.stream('go'))).events), [])
  const no = guard('beforeInference', (ctx) => ctx.stop('No.'))
  assert.deepEqual(callsIn((await watch(['Done.'], no)).events), [])
})

test('a cancelled call is not a failed attempt', async () => {
  for (const use of [[], [again]]) {
    const cancel = new AbortController()
    const agent = agentOn(
      scriptedModel(() => (setImmediate(() => cancel.abort()), { text: 'Late.', delayMs: 60_000 })),
      ...use,
    )
    const { events, run } = await recordEvents(agent.stream('go', { signal: cancel.signal }))
    assert.deepEqual([run.status, callsIn(events), attemptsOf(run)], ['cancelled', ['0: 1 scripted/script'], []])
  }
})

test('a replay calls no model, however often it was tried', async () => {
  assert.equal((await replayedRun(agentOn([failing(), 'Done.'], again), 'go')).text, 'Done.')
})

test('each of several concurrent attempts is reported', async () => {
  const both = hook('aroundInference', (_ctx, next) => Promise.any([next(), next()]))
  const { events } = await watch([failing(), { text: 'Done.', delayMs: 5 }], both)
  assert.deepEqual(callsIn(events).toSorted(), [
    '0: 1 scripted/script',
    '0: 1 scripted/script MODEL_OVERLOADED',
    '0: 2 scripted/script',
  ])
})

// ── streamed arguments of tool calls

suite('the arguments of a call', () => {
  const deltas = async (...use: readonly Use[]) => {
    const { events } = await watch([call, 'Done.'], ...use)
    return events.flatMap((event) => {
      if (event.type === 'toolCallDelta') return [`${event.callId} ${event.toolName} ${event.delta}`]
      return event.type === 'toolStarted' || event.type === 'retracted' ? [event.type] : []
    })
  }
  const told = ['call-1-1 work {"a":1}', 'toolStarted']

  test('are streamed before the call is made', async () => {
    assert.deepEqual(await deltas(), told)
    assert.deepEqual(await deltas(guard('afterInference', (ctx) => ctx, { stream: 'after' })), told)
  })

  test('are sent after the guards passed the answer, where it is held back', async () => {
    assert.deepEqual(await deltas(guard('afterInference', (ctx) => ctx)), told)
  })

  test('are sent as a hook changed them', async () => {
    const change = hook('afterInference', (ctx) => {
      const content = ctx.response.content.map((part) =>
        part.type === 'tool-call' ? { ...part, input: { b: 2 } } : part,
      )
      return ctx.withResponse({ content })
    })
    assert.deepEqual((await deltas(change))[0], 'call-1-1 work {"b":2}')
  })

  test('are not sent for a withheld answer, and are retracted if they were', async () => {
    assert.deepEqual(await deltas(guard('afterInference', (ctx) => ctx.block('No.'))), [])
    const late = await deltas(guard('afterInference', (ctx) => ctx.block('No.'), { stream: 'after' }))
    assert.deepEqual(late, ['call-1-1 work {"a":1}', 'retracted'])
  })
})

// ── warnings

/** A model with a warning for every response. */
function warning(...warnings: readonly string[]): LanguageModel {
  const speak = scriptedModel([call, 'Done.'])
  return { ...speak, infer: async (request, how) => ({ ...(await speak.infer(request, how)), warnings }) }
}

const around: readonly (readonly [string, readonly Use[]])[] = [
  ['without hooks around the call', []],
  ['with hooks around it', [again, hook('aroundInference', (_ctx, next) => next())]],
]
for (const [how, use] of around) {
  test(`a warning of a provider is an event, in the ledger and in explain, ${how}`, async () => {
    const { of, run } = await watch(warning('topK is not supported', 'seed is ignored'), ...use)
    const told = [0, 0, 1, 1].map((step, i) => ({
      step,
      message: ['topK is not supported', 'seed is ignored'][i % 2]!,
    }))
    assert.deepEqual(
      of('warning').map(({ step, message }) => ({ step, message })),
      told,
    )
    const each = { code: 'MODEL_WARNING', step: 0, count: 2 }
    assert.deepEqual(run.warnings, [
      { ...each, message: 'topK is not supported' },
      { ...each, message: 'seed is ignored' },
    ])
    assert.deepEqual(explanation(run).warnings, run.warnings)
    assert.match(explain(run), /warnings +step 1: topK is not supported \(2 times\)\n +step 1: seed is ignored \(2 /)
  })
}

test('explain reports a repeated warning once, with its count', async () => {
  const model: LanguageModel = {
    provider: 'test',
    modelId: 'odd',
    infer: async () => ({ content: [{ type: 'text', text: 'Hi.' }], finishReason: 'stop', warnings: ['odd', 'odd'] }),
  }
  assert.match(explain(await agentOn(model).run('go')), /warnings +step 1: odd \(2 times\)/)
})

// ── failed attempts

test('explain reports failed attempts per step, also of a completed run', async () => {
  const script = [failing('busy'), failing('still busy'), call, failing('busy again'), 'Done.']
  const run = await agentOn(script, again).run('go')
  assert.deepEqual(attemptsOf(run), [
    '0: attempt 1, scripted/script: busy',
    '0: attempt 2, scripted/script: still busy',
    '1: attempt 1, scripted/script: busy again',
  ])
  assert.match(explain(run), /The run is complete[^]*attempts +step 1: scripted\/script: busy\n/)
})

test('the ledger entry of an attempt belongs to the loop and stands in order among those of hooks', async () => {
  const run = await agentOn([failing(), 'Done.'], again).run('go')
  const entries = run.ledger.filter(({ trigger }) => trigger === 'aroundInference')
  assert.deepEqual(
    entries.map(({ durationMs: _ms, ...entry }) => entry),
    [
      {
        step: 0,
        trigger: 'aroundInference',
        hook: 'hookloop',
        mode: 'loop',
        decision: 'failed',
        message: 'attempt 1, scripted/script: busy',
      },
      { step: 0, trigger: 'aroundInference', hook: 'retry', mode: 'transform', decision: 'called 2 times' },
    ],
  )
})

test('later hooks see failed attempts in their ledger', async () => {
  const seen: (string | undefined)[] = []
  const look = hook('afterStep', (ctx) => {
    seen.push(ctx.ledger.findLast((entry) => entry.decision === 'failed')?.message)
    return ctx
  })
  await agentOn([failing(), 'Done.'], again, look).run('go')
  assert.deepEqual(seen, ['attempt 1, scripted/script: busy'])
})

test('a run that was saved and resumed still has its attempts and warnings', async () => {
  const ask = tool({ name: 'ask', description: 'Asks.', input: { type: 'object' }, ask: true, execute: () => 'yes' })
  const script = scriptedModel([failing(), { toolCalls: [{ name: 'ask' }] }, failing(), 'Done.'])
  const agent = agentOn(script, ask, approval('suspend'), again)
  const waiting = await agent.run('go')
  assert.ok(waiting.status === 'suspended')
  const saved = JSON.parse(JSON.stringify(waiting)) as SavedRun
  const run = await agent.resume(saved, { answers: { [waiting.pending[0]!.id]: 'allow' } })
  assert.deepEqual(attemptsOf(run), ['0: attempt 1, scripted/script: busy', '1: attempt 1, scripted/script: busy'])
})
