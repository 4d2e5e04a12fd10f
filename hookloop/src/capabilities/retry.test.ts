import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import { explain } from '../agent/explain/explain.ts'
import { explanation } from '../agent/explain/explanation.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { textOf } from '../state/message.ts'
import { AgentError, errorCodes, type ErrorCode } from '../errors.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from '../models/scripted.ts'
import { recordDelays } from '../system/record-delays.fixture.ts'
import { errorPolicy } from './error-policy.ts'
import { guards } from './guards.ts'
import { startedTimers } from '../system/started-timers.fixture.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { retryableErrorCodes, retry } from './retry.ts'

/** Waits that are too short to matter. */
const quick = { backoffMs: 1, maxBackoffMs: 2 }
const long = 20_000

function failing(code: ErrorCode = 'MODEL_OVERLOADED', message = 'busy', value?: object): ScriptedTurn {
  return { error: new AgentError(code, message, { value }) }
}

function agentOn(model: ScriptedModel, ...use: readonly Use[]): Agent {
  return createAgent({ model, use })
}

function errorOf(run: Run): AgentError {
  assert.ok(run.status === 'failed', `the run is ${run.status}`)
  return run.error
}

// ── what is retried

for (const code of retryableErrorCodes) {
  test(`a call that failed with ${code} is retried`, async () => {
    const model = scriptedModel([failing(code), 'Done.'])
    const run = await agentOn(model, retry(quick)).run('go')
    assert.deepEqual([run.status, run.text, model.requests.length], ['completed', 'Done.', 2])
  })
}

const lasting = (Object.keys(errorCodes) as ErrorCode[]).filter(
  (code) => !(retryableErrorCodes as readonly string[]).includes(code),
)
test('no other failure is retried', async () => {
  for (const code of lasting.filter((each) => !/^(REPLAY_|RECORDING_)/.test(each))) {
    const model = scriptedModel([failing(code), 'Done.'])
    const run = await agentOn(model, retry(quick)).run('go')
    assert.deepEqual([errorOf(run).code, model.requests.length], [code, 1], code)
  }
})

test('by default an error without a code is not retried', async () => {
  const model = scriptedModel([{ error: 'boom' }, 'Done.'])
  const run = await agentOn(model, retry(quick)).run('go')
  assert.deepEqual([errorOf(run).code, model.requests.length], ['MODEL_FAILED', 1])
})

test('with "on", only those codes are retried', async () => {
  const only = retry({ ...quick, on: ['MODEL_REJECTED'] })
  const rejected = await agentOn(scriptedModel([failing('MODEL_REJECTED'), 'Done.']), only).run('go')
  const overloaded = await agentOn(scriptedModel([failing(), 'Done.']), only).run('go')
  assert.deepEqual([rejected.text, errorOf(overloaded).code], ['Done.', 'MODEL_OVERLOADED'])
})

test('an error without a code is retried as MODEL_FAILED', async () => {
  const run = await agentOn(scriptedModel([{ error: 'boom' }, 'Done.']), retry({ ...quick, on: ['MODEL_FAILED'] })).run(
    'go',
  )
  assert.equal(run.text, 'Done.')
})

for (const maxRetries of [0, 1, 4]) {
  test(`with maxRetries: ${maxRetries} the model is called ${maxRetries + 1} times, and the last failure is reported`, async () => {
    const turns = Array.from({ length: 9 }, (_, i) => failing('MODEL_OVERLOADED', `busy ${i + 1}`))
    const model = scriptedModel(turns)
    const run = await agentOn(model, retry({ ...quick, maxRetries })).run('go')
    assert.deepEqual([errorOf(run).message, model.requests.length], [`busy ${maxRetries + 1}`, maxRetries + 1])
  })
}

test('by default a call is made three times', async () => {
  const model = scriptedModel(() => failing())
  await agentOn(model, retry(quick)).run('go')
  assert.equal(model.requests.length, 3)
})

test('each call of a run has its own retries', async () => {
  const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
  const [busy, call] = [failing(), { toolCalls: [{ name: 'work' }] }]
  const model = scriptedModel([busy, busy, call, busy, busy, 'Done.'])
  const run = await agentOn(model, work, retry(quick)).run('go')
  assert.deepEqual([run.status, run.state.stepCount, model.requests.length], ['completed', 2, 6])
})

test('every attempt sends the same request', async () => {
  const model = scriptedModel([failing(), failing(), 'Done.'])
  await agentOn(model, retry(quick)).run('go')
  const [first, ...others] = model.requests.map((request) => JSON.stringify(request))
  assert.deepEqual(others, [first, first])
})

test('concurrent runs have separate retries', async () => {
  const seen = new Set<string>()
  const model = scriptedModel(({ messages }) => {
    const input = textOf(messages.at(0)!.content)
    if (seen.has(input)) return `Done ${input}.`
    seen.add(input)
    return failing()
  })
  const agent = agentOn(model, retry({ ...quick, maxRetries: 1 }))
  const inputs = Array.from({ length: 50 }, (_, i) => `n${i}`)
  const runs = await Promise.all(inputs.map((input) => agent.run(input)))
  assert.deepEqual(
    runs.map((run) => run.text),
    inputs.map((input) => `Done ${input}.`),
  )
})

test('onError fires after the last attempt, and its retry has as many attempts again', async () => {
  const model = scriptedModel([failing(), failing(), failing(), 'Done.'])
  let heard = 0
  const listen = hook('onError', (ctx) => (heard++, ctx))
  const run = await agentOn(model, listen, errorPolicy({ backoffMs: 0 }), retry({ ...quick, maxRetries: 1 })).run('go')
  assert.deepEqual([run.status, heard, model.requests.length], ['completed', 1, 4])
})

// ── waits

test('the wait that the provider asks for is used', async (t) => {
  const delays = recordDelays(t)
  const model = scriptedModel([failing('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 80 }), 'Done.'])
  await agentOn(model, retry({ backoffMs: 0 })).run('go')
  assert.deepEqual([delays, model.requests.length], [[80], 2])
})

test('the wait of the provider overrides the backoff', async () => {
  const model = scriptedModel([failing('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 1 }), 'Done.'])
  const waits = retry({ backoffMs: long, maxBackoffMs: long })
  const run = await agentOn(model, waits).run('go', { signal: AbortSignal.timeout(120_000) })
  assert.equal(run.status, 'completed')
})

test('a wait longer than maxRetryAfterMs fails the call at once', async () => {
  const asked = (ms: number) =>
    scriptedModel([failing('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: ms }), 'Done.'])
  const signal = AbortSignal.timeout(120_000)
  const patient = await agentOn(asked(50), retry({ maxRetryAfterMs: 50 })).run('go', { signal })
  const hasty = await agentOn(asked(50), retry({ maxRetryAfterMs: 49 })).run('go', { signal })
  const usual = await agentOn(asked(60_001), retry()).run('go', { signal })
  assert.deepEqual([patient.status, hasty.status, usual.status], ['completed', 'failed', 'failed'])
})

test('a wait longer than the longest timer does not fire at once', async () => {
  const cancel = new AbortController()
  const model = scriptedModel(() => {
    setTimeout(() => cancel.abort(), 60)
    return failing('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 2 ** 32 })
  })
  const waits = retry({ maxRetryAfterMs: Infinity })
  const run = await agentOn(model, waits).run('go', { signal: cancel.signal })
  assert.deepEqual([run.status, model.requests.length], ['cancelled', 1])
})

test('waits double up to maxBackoffMs', async (t) => {
  const delays = recordDelays(t)
  const model = scriptedModel(() => failing())
  await agentOn(model, retry({ maxRetries: 4, backoffMs: 20, maxBackoffMs: 60 })).run('go')
  const longest = [20, 40, 60, 60] // jitter takes away at most half
  assert.equal(delays.length, longest.length)
  assert.ok(
    delays.every((ms, i) => ms >= longest[i]! / 2 && ms <= longest[i]!),
    delays.join(' '),
  )
  const capped = agentOn(model, retry({ backoffMs: long, maxBackoffMs: 1 }))
  assert.equal((await capped.run('go', { signal: AbortSignal.timeout(120_000) })).status, 'failed')
})

// ── cancellation and guards

test('a cancellation during the wait ends the run at once', async () => {
  const cancel = new AbortController()
  const model = scriptedModel(() => (setImmediate(() => cancel.abort()), failing()))
  const agent = agentOn(model, retry({ backoffMs: 50_000, maxBackoffMs: 50_000 }))
  let status: string | undefined
  const left = await startedTimers(async () => ({ status } = await agent.run('go', { signal: cancel.signal })))
  assert.deepEqual([status, model.requests.length, left()], ['cancelled', 1, 0])
})

test('guards judge every attempt', async () => {
  let judged = 0
  const count = guard('beforeInference', (ctx) => (judged++, ctx))
  await agentOn(scriptedModel([failing(), failing(), 'Done.']), count, retry(quick)).run('go')
  assert.equal(judged, 3)
})

for (const on of [undefined, ['MODEL_OVERLOADED', 'MODEL_FAILED'] as const]) {
  test(`a guard that forbids an attempt ends the retries${on ? ', whatever "on" says' : ''}`, async () => {
    let judged = 0
    const twice = guard('beforeInference', (ctx) => (++judged > 2 ? ctx.stop('Enough.') : ctx), { name: 'twice' })
    const model = scriptedModel(() => failing())
    const run = await agentOn(model, twice, retry({ ...quick, maxRetries: 8, ...(on && { on }) })).run('go')
    assert.deepEqual([run.status, run.status === 'stopped' && run.by], ['stopped', 'twice'])
    assert.deepEqual([judged, model.requests.length], [3, 2])
  })
}

test('a guard that throws at a further attempt forbids it', async () => {
  let judged = 0
  const broken = guard('beforeInference', (ctx) => (++judged > 1 ? assert.fail('broken') : ctx), { name: 'broken' })
  const model = scriptedModel([failing(), 'Done.'])
  const run = await agentOn(model, broken, retry(quick)).run('go')
  assert.deepEqual([run.status, run.status === 'stopped' && run.by, model.requests.length], ['stopped', 'broken', 1])
})

// ── usage, ledger and replay

/** Rejects a response the first time, like a hook that cannot parse it. */
function unreadableOnce(): Use {
  let times = 0
  return hook('aroundInference', async (_ctx, next) => {
    const response = await next()
    if (times++ === 0) throw new AgentError('MODEL_REPLY_INVALID', 'unreadable')
    return response
  })
}

test('the cost of every attempt is counted', async () => {
  const model = scriptedModel(['First.', 'Second.'], { usage: { costUsd: 0.25 } })
  const run = await agentOn(model, unreadableOnce(), retry(quick)).run('go')
  const { inputTokens, outputTokens, costUsd, steps } = run.state.usage
  assert.deepEqual([run.text, inputTokens, outputTokens, costUsd, steps], ['Second.', 20, 10, 0.5, 1])
})

test('a limit that an attempt reaches forbids the next', async () => {
  const model = scriptedModel(['First.', 'Second.'], { usage: { costUsd: 0.25 } })
  const run = await agentOn(model, unreadableOnce(), guards({ maxCost: 0.25 }), retry(quick)).run('go')
  const by = run.status === 'stopped' && run.by
  assert.deepEqual([by, model.requests.length, run.state.usage.costUsd], ['guards.maxCost', 1, 0.25])
})

test('the ledger and explain have every failed attempt', async () => {
  const model = scriptedModel([failing('MODEL_OVERLOADED', 'busy'), failing('MODEL_TIMED_OUT', 'late'), 'Done.'])
  const run = await agentOn(model, retry(quick)).run('go')
  const reported = ['attempt 1, scripted/script: busy', 'attempt 2, scripted/script: late']
  const entries = run.ledger.filter((entry) => entry.mode === 'loop' && entry.decision === 'failed')
  assert.deepEqual(
    entries.map(({ step, trigger, message }) => [step, trigger, message]),
    reported.map((message) => [0, 'aroundInference', message]),
  )
  assert.deepEqual(
    explanation(run).failedAttempts.map(({ message }) => message),
    reported,
  )
  assert.match(explain(run), /attempts +step 1: scripted\/script: busy\n +step 1: scripted\/script: late/)
  assert.equal(run.ledger.find((entry) => entry.hook === 'retry')?.decision, 'called 3 times')
})

suite('recorded and replayed', () => {
  const endings: readonly (readonly [string, readonly ScriptedTurn[], Run['status']])[] = [
    ['that came through at last', [failing(), failing('MODEL_TIMED_OUT', 'late'), 'Done.'], 'completed'],
    ['that failed in the end', [failing(), failing(), failing('MODEL_OVERLOADED', 'still busy')], 'failed'],
  ]
  for (const [how, turns, status] of endings) {
    test(`a run ${how} replays without a model`, async () => {
      const store = memoryStore()
      const agent = createAgent({ model: scriptedModel(turns), store, use: [retry(quick)] })
      const live = await agent.run('go', { session: 's' })
      const dead = scriptedModel([])
      await strictReplay(agentOn(dead, retry(quick)), store, 's')
      assert.deepEqual([live.status, dead.requests.length], [status, 0])
    })
  }

  test('a cancellation during the wait is one in the replay', async () => {
    const store = memoryStore()
    const waits = retry({ backoffMs: long, maxBackoffMs: long })
    const cancel = new AbortController()
    const model = scriptedModel(() => (setImmediate(() => cancel.abort()), failing()))
    const agent = createAgent({ model, store, use: [waits] })
    const live = await agent.run('go', { session: 's', signal: cancel.signal })
    assert.equal(live.status, 'cancelled')
    await strictReplay(agentOn(scriptedModel([]), waits), store, 's')
  })
})

// ── invalid options

const rejected: readonly (readonly [string, object])[] = [
  ['maxRetries', { maxRetries: -1 }],
  ['maxRetries', { maxRetries: 0.5 }],
  ['retries', { retries: 5 }],
  ['on', { on: ['MODEL_RATELIMITED'] }],
  ['backoffMs', { backoffMs: -1 }],
  ['maxBackoffMs', { maxBackoffMs: Number.NaN }],
  ['maxRetryAfterMs', { maxRetryAfterMs: 'long' }],
]
test('invalid options are rejected by name', () => {
  for (const [name, options] of rejected) {
    const named = { code: 'AGENT_INVALID_OPTION', message: new RegExp(`"${name}"`) }
    assert.throws(() => retry(options), named, JSON.stringify(options))
  }
})

test('the description of an agent has maxRetries', () => {
  const { notes } = agentOn(scriptedModel([]), retry({ maxRetries: 3 })).describe()
  assert.ok(notes.includes('Model calls: up to 3 retries.'))
})
