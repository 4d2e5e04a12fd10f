import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { completion } from '../../capabilities/completion.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { retryLimit } from '../../capabilities/retry-limit.ts'
import { createAgent } from '../../create-agent.ts'
import { stopReasons, type ContinuationOutcome, type StopReason } from '../state/continuation.ts'
import type { FinishReason, ModelRequest } from '../state/inference.ts'
import type { Json } from '../../values/json.ts'
import { textOf } from '../state/message.ts'
import { guard, hook, type Hook } from '../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../../models/scripted.ts'
import type { RunOptions } from '../agent/run-options.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { fullStore, runIn } from '../../sessions/replay/replayed-run.fixture.ts'

const free = guards({ maxSteps: null, maxTokens: null })
const callWork: ScriptedTurn = { toolCalls: [{ name: 'work' }] }

const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
const broken = tool({
  name: 'broken',
  description: 'Does not work.',
  input: { type: 'object' },
  execute: () => Promise.reject(new Error('broken')),
})

type ModelScript = Script | ((request: ModelRequest) => ScriptedTurn)

function run(script: ModelScript, use: readonly Use[] = [], options?: RunOptions): Promise<Run> {
  return createAgent({ model: scriptedModel(script), use: [work, broken, ...use] }).run('go', options)
}

function outcomesOf({ state }: Run): readonly (ContinuationOutcome | undefined)[] {
  return state.execution!.steps.map((step) => step.outcome)
}

function final(ended: Run): { status: string; reason: StopReason; by: string; value?: Json } {
  assert.ok(ended.status !== 'suspended')
  const { status, reason, by, value } = ended.final
  return { status, reason, by, ...(value !== undefined && { value }) }
}

// ── votes

const votes = {
  forbid: guard('afterStep', (ctx) => ctx.stop('no'), { name: 'forbid' }),
  request: guard('afterStep', (ctx) => (ctx.step.index === 0 ? ctx.requestContinuation('more') : ctx), {
    name: 'request',
  }),
  allowStop: guard('afterStep', (ctx) => ctx.allowStop('may end'), { name: 'allowStop' }),
  allowContinuation: guard('afterStep', (ctx) => ctx.allowContinuation('may go on'), { name: 'allowContinuation' }),
} satisfies { readonly [name: string]: Hook }

const silent = { name: 'completion' } // replaces the default capability, so that only the votes of the test count

for (const [names, goesOn, by] of [
  [['allowContinuation', 'allowStop', 'request', 'forbid'], false, 'forbid'],
  [['request', 'forbid'], false, 'forbid'],
  [['forbid', 'request'], false, 'forbid'],
  [['allowContinuation', 'allowStop', 'request'], true, 'request'],
  [['allowStop', 'allowContinuation'], false, 'allowStop'],
  [['allowContinuation'], true, 'allowContinuation'],
  [[], true, undefined],
] as const) {
  test(`of the votes ${names.join(', ') || '(none)'}, ${by ?? 'no vote'} decides: ${goesOn ? 'continue' : 'stop'}`, async () => {
    const ended = await run(() => 'said', [silent, guards({ maxSteps: 3 }), ...names.map((name) => votes[name])])
    const [first] = outcomesOf(ended)
    assert.deepEqual([first?.shouldContinue, first?.resolvedBy], [goesOn, by])
    assert.deepEqual(
      first?.evaluations.map((vote) => vote.source),
      [...names],
    )
  })
}

test('of two forbids the one with the more urgent reason is reported, in any order', async () => {
  const late = guard('afterStep', (ctx) => ctx.stop('limit', { reason: 'stepsLimit' }), { name: 'limit', priority: 9 })
  const person = guard('afterStep', (ctx) => ctx.stop('person', { reason: 'userRequested' }), { name: 'person' })
  assert.deepEqual(final(await run(['said'], [late, person])), {
    status: 'stopped',
    reason: 'userRequested',
    by: 'person',
  })
})

test('each step records the outcome of its own votes, and no vote is counted twice', async () => {
  const script: Script = [callWork, 'half', 'whole']
  const more = guard('afterStep', (ctx) => (ctx.step.text === 'half' ? ctx.requestContinuation('more') : ctx), {
    name: 'more',
  })
  const ended = await run(script, [more])
  assert.deepEqual(
    outcomesOf(ended).map((outcome) => outcome?.evaluations.map((vote) => `${vote.source} ${vote.decision}`)),
    [[], ['more requestContinuation', 'completion allowStop'], ['completion allowStop']],
  )
  assert.deepEqual(ended.state.execution?.votes, [])
})

test('a vote at beforeStep is counted before the step, and not again after it', async () => {
  const early = guard('beforeStep', (ctx) => ctx.allowContinuation('fine'), { name: 'early' })
  const [first] = outcomesOf(await run(['said'], [early]))
  assert.deepEqual(
    first?.evaluations.map((vote) => vote.source),
    ['completion'],
  )
})

test('requestContinuation sends its reason to the model', async () => {
  const model = scriptedModel(['half', 'whole'])
  const more = guard('afterStep', (ctx) => (ctx.step.index === 0 ? ctx.requestContinuation('Name the file.') : ctx))
  await createAgent({ model, use: [more] }).run('go')
  assert.deepEqual(
    [...model.requests[1]!.messages].map(({ role, content }) => `${role}: ${textOf(content)}`),
    ['user: go', 'assistant: half', 'user: Name the file.'],
  )
})

// ── onStop

test('onStop overrides an allowStop, and the model receives the reason', async () => {
  const model = scriptedModel(['half', 'whole'])
  const back = hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Run the test.') : ctx))
  const ended = await createAgent({ model, use: [back] }).run('go')
  assert.deepEqual([ended.status, ended.text], ['completed', 'whole'])
  assert.equal(textOf(model.requests[1]!.messages.at(-1)!.content), 'Run the test.')
})

test('onStop never overrides a forbid, and the ledger has the attempt', async () => {
  const back = hook('onStop', (ctx) => ctx.requestContinuation('go on'), { name: 'back' })
  const ended = await run(['said', 'more'], [votes.forbid, back])
  assert.deepEqual(final(ended), { status: 'stopped', reason: 'stopRequested', by: 'forbid' })
  assert.ok(ended.ledger.some((entry) => entry.trigger === 'onStop' && entry.decision === 'overruled'))
})

test('onStop sees the outcome with every vote, from beforeStep and from afterStep', async () => {
  const seen: ContinuationOutcome[] = []
  const look = hook('onStop', (ctx) => (seen.push(ctx.outcome), ctx))
  await run(['said'], [votes.allowContinuation, look])
  await run(['said'], [guards({ maxSteps: 0 }), look])
  assert.deepEqual(
    seen.map(({ shouldContinue, stopReason, resolvedBy, evaluations }) => [
      shouldContinue,
      stopReason,
      resolvedBy,
      evaluations.map((vote) => vote.source),
    ]),
    [
      [false, 'completed', 'completion', ['allowContinuation', 'completion']],
      [false, 'stepsLimit', 'guards.maxSteps', ['guards.maxSteps']],
    ],
  )
})

test('changes of the state at onStop are applied, whether the run continues or ends', async () => {
  const count = hook('onStop', (ctx) => {
    const times = (ctx.state.metadata['stops'] as number | undefined) ?? 0
    const kept = ctx.withState((state) => state.withMetadata('stops', times + 1))
    return times < 2 ? kept.requestContinuation('again') : kept
  })
  const ended = await run(() => 'said', [count])
  assert.deepEqual([ended.status, ended.state.metadata['stops'], ended.state.stepCount], ['completed', 3, 3])
})

// ── limits of continuations

test('after 8 continuations in a row the run ends with continuationLimit', async () => {
  const seen: number[] = []
  const back = hook('onStop', (ctx) => (seen.push(ctx.continuations), ctx.requestContinuation('again')))
  const ended = await run(() => 'said', [free, back])
  assert.deepEqual(final(ended), {
    status: 'stopped',
    reason: 'continuationLimit',
    by: 'hookloop',
    value: { inRow: 8, total: 8 },
  })
  assert.deepEqual([ended.state.stepCount, seen], [9, [0, 1, 2, 3, 4, 5, 6, 7, 8]])
})

test('continuations requested at afterStep are counted like those of onStop', async () => {
  const again = guard('afterStep', (ctx) => ctx.requestContinuation('again'), { name: 'again' })
  const ended = await run(() => 'said', [free, again])
  assert.deepEqual([final(ended).reason, ended.state.stepCount], ['continuationLimit', 9])
})

test('a step without a vote to stop is not a continuation', async () => {
  const again = guard('afterStep', (ctx) => (ctx.step.index < 20 ? ctx.requestContinuation('again') : ctx))
  const ended = await run(({ messages }) => (messages.length < 60 ? callWork : 'said'), [free, again])
  assert.equal(ended.status, 'completed')
  assert.deepEqual(ended.state.execution?.continuations, { inRow: 0, total: 0 })
})

test('a successful tool call resets the count in a row, and an execution has at most 32 continuations', async () => {
  let turns = 0
  const back = hook('onStop', (ctx) => ctx.requestContinuation('again'))
  const ended = await run(() => (turns++ % 2 === 0 ? callWork : 'said'), [free, back])
  assert.deepEqual(final(ended).value, { inRow: 0, total: 32 })
  assert.deepEqual([final(ended).reason, ended.state.stepCount], ['continuationLimit', 66])
})

test('a failed tool call does not reset the count in a row', async () => {
  let turns = 0
  const back = hook('onStop', (ctx) => ctx.requestContinuation('again'))
  const ended = await run(() => (turns++ % 2 === 0 ? { toolCalls: [{ name: 'broken' }] } : 'said'), [free, back])
  assert.deepEqual(final(ended).value, { inRow: 8, total: 8 })
})

test('each execution starts its own count of continuations', async () => {
  const agent = createAgent({
    model: scriptedModel(() => 'said'),
    use: [hook('onStop', (ctx) => (ctx.continuations < 5 ? ctx.requestContinuation('again') : ctx))],
  })
  const first = await agent.run('go')
  const second = await agent.run('go', { from: first })
  assert.deepEqual([first.state.stepCount, second.state.stepCount, second.status], [6, 6, 'completed'])
})

// ── finish reasons

const endings: readonly (readonly [string, ScriptedTurn, FinishReason?])[] = [
  ['an answer that was cut off', { text: 'half an ans', finishReason: 'length' }, 'length'],
  ['an answer the provider filtered', { text: 'I', finishReason: 'content-filter' }, 'content-filter'],
  ['an answer that ended for another reason', { text: 'hm', finishReason: 'other' }, 'other'],
  ['an answer the provider calls an error', { text: 'oh', finishReason: 'error' }, 'error'],
  ['an empty answer', ''],
  ['an answer of thoughts only', { reasoning: 'hm' }],
]
for (const [what, turn, value] of endings) {
  test(`${what} stops with finishReason and is never completed`, async () => {
    const { value: told, ...rest } = final(await run([turn]))
    assert.deepEqual(rest, { status: 'stopped', reason: 'finishReason', by: 'completion' })
    if (value !== undefined) assert.equal(told, value)
  })
}

// ── every stop reason, with the hook that decided and the value

type Reached = {
  readonly reason: StopReason
  readonly by: string
  readonly value?: Json
  readonly status?: string
  readonly script?: ModelScript
  readonly use?: readonly Use[]
  readonly options?: RunOptions
}

const slow = tool({ name: 'slow', description: 'Slow.', input: { type: 'object' }, execute: () => delay(20) })
const limit = (value: number, most: number): Json => ({ value, limit: most })

const reached: readonly Reached[] = [
  {
    reason: 'errorForbade',
    by: 'errorPolicy.onError',
    value: limit(0, 0),
    script: [{ error: 'boom' }],
    use: [errorPolicy('strict')],
  },
  { reason: 'errorForbade', by: 'error at aroundInference', status: 'failed', script: [{ error: 'boom' }] },
  {
    reason: 'stopRequested',
    by: 'night',
    value: 23,
    use: [hook('beforeExecution', (ctx) => ctx.stop('It is night.', { value: 23 }), { name: 'night' })],
  },
  { reason: 'userRequested', by: 'signal', status: 'cancelled', options: { signal: AbortSignal.abort() } },
  {
    reason: 'userRequested',
    by: 'button',
    use: [guard('beforeStep', (ctx) => ctx.stop('pressed', { reason: 'userRequested' }), { name: 'button' })],
  },
  { reason: 'inputBlocked', by: 'polite', use: [guard('onUserInput', (ctx) => ctx.block('rude'), { name: 'polite' })] },
  {
    reason: 'stepsLimit',
    by: 'guards.maxSteps',
    value: limit(2, 2),
    script: () => callWork,
    use: [guards({ maxSteps: 2 })],
  },
  {
    reason: 'tokenLimit',
    by: 'guards.maxTokens',
    value: limit(30, 20),
    script: () => callWork,
    use: [guards({ maxTokens: 20 })],
  },
  {
    reason: 'costLimit',
    by: 'guards.maxCost',
    value: limit(0.5, 0.5),
    script: () => ({ ...callWork, usage: { costUsd: 0.25 } }),
    use: [guards({ maxCost: 0.5 })],
  },
  {
    reason: 'toolCallLimit',
    by: 'guards.maxToolCalls',
    value: limit(2, 1),
    script: () => callWork,
    use: [guards({ maxToolCalls: 1 })],
  },
  {
    reason: 'retryLimit',
    by: 'retryLimit',
    value: limit(2, 2),
    script: () => ({ toolCalls: [{ name: 'broken' }] }),
    use: [retryLimit({ maxRetries: 2 })],
  },
  {
    reason: 'continuationLimit',
    by: 'hookloop',
    value: { inRow: 8, total: 8 },
    script: () => 'said',
    use: [hook('onStop', (ctx) => ctx.requestContinuation('again'))],
  },
  {
    reason: 'finishReason',
    by: 'guards.finishReasons',
    value: 'length',
    script: [{ ...callWork, finishReason: 'length' }],
    use: [guards({ finishReasons: ['length'] })],
  },
  { reason: 'completed', by: 'completion', status: 'completed' },
]

suite('every stop reason names the hook that decided and the value', () => {
  for (const { reason, by, value, status = 'stopped', script = ['said'], use = [], options } of reached) {
    test(`${reason}: decided by ${by}`, async () => {
      assert.deepEqual(final(await run(script, use, options)), {
        status,
        reason,
        by,
        ...(value !== undefined && { value }),
      })
    })
  }

  test('timeLimit: decided by guards.maxTimeMs', async () => {
    const ended = await run(() => ({ toolCalls: [{ name: 'slow' }] }), [slow, guards({ maxTimeMs: 15 })])
    const { value, ...rest } = final(ended)
    assert.deepEqual(rest, { status: 'stopped', reason: 'timeLimit', by: 'guards.maxTimeMs' })
    assert.ok((value as { value: number }).value >= 15)
  })

  test('persistenceFailed: decided by store', async () => {
    const ended = await runIn(fullStore(), createAgent({ model: scriptedModel(['said']) }), 'go')
    assert.deepEqual(final(ended), { status: 'failed', reason: 'persistenceFailed', by: 'store' })
  })

  test('no stop reason is missing here', () => {
    assert.deepEqual(
      new Set([...reached.map((each) => each.reason), 'timeLimit', 'persistenceFailed']),
      new Set(stopReasons),
    )
  })
})

// ── the final status

test('the status is final after onStop: no cancel, error or vote changes it later', async () => {
  const controller = new AbortController()
  const late = hook('afterExecution', (ctx) => {
    controller.abort()
    return Promise.reject(new Error(`too late for ${ctx.outcome.stopReason}`))
  })
  const kept = hook('afterExecution', (ctx) => ctx.withState((state) => state.withMetadata('closed', true)))
  const ended = await run(['said'], [completion(), late, kept], { signal: controller.signal })
  assert.deepEqual(final(ended), { status: 'completed', reason: 'completed', by: 'completion' })
  assert.deepEqual([ended.state.execution?.status, ended.state.metadata['closed']], ['completed', true])
})
