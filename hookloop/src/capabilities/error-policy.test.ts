import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { liveEffects } from '../effects/effects.ts'
import type { AgentError } from '../errors.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../models/scripted.ts'
import { fakeClock } from '../testing/fake-clock.ts'
import { errorPolicies, errorPolicy } from './error-policy.ts'
import { guards } from './guards.ts'

const broken: ScriptedTurn = { error: 'overloaded' }
const good: ScriptedTurn = { toolCalls: [{ name: 'work', args: {} }] }
const bad: ScriptedTurn = { toolCalls: [{ name: 'work', args: { fail: true } }] }

const work = tool({
  name: 'work',
  description: 'Works, or does not.',
  input: { type: 'object' },
  execute: ({ fail }) => {
    if (fail === true) throw new Error('no luck')
    return 'worked'
  },
})

function run(script: Script, ...use: readonly Use[]): Promise<Run> {
  return runAt(fakeClock({ auto: true }), script, ...use)
}

function runAt(clock: ReturnType<typeof fakeClock>, script: Script, ...use: readonly Use[]): Promise<Run> {
  const agent = createAgent({ model: scriptedModel(script), use: [work, ...use] })
  return agent.run('go', { effects: liveEffects({ clock }) })
}

function endOf(run: Run): object {
  assert.notEqual(run.status, 'suspended')
  const { status, reason, by, value } = (run as Exclude<Run, { status: 'suspended' }>).final
  return { status, reason, by, ...(value !== undefined && { value }) }
}

test('without a policy an error fails the run', async () => {
  assert.deepEqual(endOf(await run([broken, 'done'])), {
    status: 'failed',
    reason: 'errorForbade',
    by: 'error at aroundInference',
  })
})

test('without a policy failed calls are reported to the model only', async () => {
  assert.equal((await run([bad, bad, bad, bad, bad, 'done'])).status, 'completed')
})

test('the description of the agent has the policy', () => {
  const agent = createAgent({ model: scriptedModel([]), use: [errorPolicy('patient')] })
  assert.ok(agent.describe().notes.includes('Errors: retry, at most 3 retries in a row.'))
})

test('the strict policy stops at the first error, and the run is stopped, not failed', async () => {
  assert.deepEqual(endOf(await run([broken, 'done'], errorPolicy('strict'))), {
    status: 'stopped',
    reason: 'errorForbade',
    by: 'errorPolicy.onError',
    value: { value: 0, limit: 0 },
  })
})

test('the strict policy stops at the first failed call', async () => {
  assert.deepEqual(endOf(await run([bad, 'done'], errorPolicy('strict'))), {
    status: 'stopped',
    reason: 'errorForbade',
    by: 'errorPolicy.afterStep',
    value: { value: 0, limit: 0 },
  })
})

test('the patient policy retries until the model replies', async () => {
  const ended = await run([broken, broken, broken, good, 'done'], errorPolicy('patient'))
  assert.equal(ended.status, 'completed')
  assert.equal(ended.text, 'done')
})

test('an answer of the second attempt ends the run like any other', async () => {
  const ended = await run([broken, 'done', 'done again'], errorPolicy('patient'))
  assert.equal(ended.text, 'done')
  assert.equal(ended.state.stepCount, 1)
})

test('the patient policy stops at the fourth consecutive failure', async () => {
  const clock = fakeClock({ auto: true })
  assert.deepEqual(endOf(await runAt(clock, [broken, broken, broken, broken, 'done'], errorPolicy('patient'))), {
    status: 'stopped',
    reason: 'errorForbade',
    by: 'errorPolicy.onError',
    value: { value: 3, limit: 3 },
  })
  assert.equal(clock.now(), 250 + 500 + 1000)
})

test('the wait before a retry doubles up to its maximum', async () => {
  const clock = fakeClock({ auto: true })
  const times: number[] = []
  const script = Array.from({ length: 6 }, (_, i) => () => {
    times.push(clock.now())
    return i < 5 ? broken : 'done'
  })
  await runAt(clock, script, errorPolicy({ backoffMs: 100, maxBackoffMs: 500, maxRetries: 9 }))
  assert.deepEqual(
    times.map((time, i) => time - (times[i - 1] ?? 0)),
    [0, 100, 200, 400, 500, 500],
  )
})

test('a run that is cancelled while it waits for a retry ends at once', async () => {
  const clock = fakeClock()
  const abort = new AbortController()
  const agent = createAgent({ model: scriptedModel([broken, 'done']), use: [errorPolicy({ backoffMs: 60_000 })] })
  const ending = agent.run('go', { effects: liveEffects({ clock }), signal: abort.signal })
  setImmediate(() => abort.abort())
  assert.equal((await ending).status, 'cancelled')
})

test('the tolerant policy continues after a failure', async () => {
  const ended = await run([broken, broken, 'done'], errorPolicy('tolerant'))
  assert.equal(ended.status, 'completed')
  assert.deepEqual(
    ended.state.execution!.steps.slice().map((step) => step.type),
    ['error', 'error', 'finalResponse'],
  )
})

test('with the tolerant policy a limit stops a run that always fails', async () => {
  const ended = await run(
    Array.from({ length: 9 }, () => broken),
    errorPolicy('tolerant'),
    guards({ maxSteps: 5 }),
  )
  assert.deepEqual(endOf(ended), {
    status: 'stopped',
    reason: 'stepsLimit',
    by: 'guards.maxSteps',
    value: { value: 5, limit: 5 },
  })
})

test('a policy also applies to hooks that throw', async () => {
  let calls = 0
  const flaky = hook(
    'beforeInference',
    (ctx) => {
      if (++calls < 3) throw new Error('flaky')
      return ctx
    },
    { name: 'flaky' },
  )
  assert.equal((await run(['done'], flaky, errorPolicy('patient'))).status, 'completed')
})

test('consecutive failed calls stop the run after the step that reaches the limit', async () => {
  const ended = await run([bad, bad, bad, 'done'], errorPolicy({ maxRetries: 2 }))
  assert.deepEqual(endOf(ended), {
    status: 'stopped',
    reason: 'errorForbade',
    by: 'errorPolicy.afterStep',
    value: { value: 2, limit: 2 },
  })
  assert.equal(ended.state.stepCount, 3)
})

test('blocked calls count as failures', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
  const ended = await run([good, good, 'done'], never, errorPolicy({ maxRetries: 1 }))
  assert.deepEqual(endOf(ended), {
    status: 'stopped',
    reason: 'errorForbade',
    by: 'errorPolicy.afterStep',
    value: { value: 1, limit: 1 },
  })
})

test('failed calls, blocked calls and errors are counted together', async () => {
  const never = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['fail'] === true ? ctx : ctx.block()), {
    name: 'never',
  })
  const ended = await run([bad, good, broken, 'done'], never, errorPolicy({ maxRetries: 2 }))
  assert.deepEqual(endOf(ended), {
    status: 'stopped',
    reason: 'errorForbade',
    by: 'errorPolicy.onError',
    value: { value: 2, limit: 2 },
  })
})

test('a successful call restarts the count', async () => {
  const ended = await run([bad, bad, good, bad, bad, good, 'done'], errorPolicy({ maxRetries: 2 }))
  assert.equal(ended.status, 'completed')
})

test('one success among the calls of a step is a success', async () => {
  const mixed: ScriptedTurn = { toolCalls: [{ name: 'work', args: { fail: true } }, { name: 'work' }] }
  assert.equal((await run([mixed, mixed, mixed, 'done'], errorPolicy({ maxRetries: 1 }))).status, 'completed')
})

test('errors that are each followed by a success are not consecutive', async () => {
  const script = [broken, good, broken, good, broken, good, broken, good, 'done']
  assert.equal((await run(script, errorPolicy({ maxRetries: 1 }))).status, 'completed')
})

test('a retry is checked against the limits like the first attempt', async () => {
  const model = scriptedModel([broken, broken, 'said after 1800 ms'])
  const use = [errorPolicy({ backoffMs: 600, maxRetries: 9 }), guards({ maxTimeMs: 1000 })]
  const ended = await createAgent({ model, use }).run('go', {
    effects: liveEffects({ clock: fakeClock({ auto: true }) }),
  })
  assert.equal(ended.status === 'stopped' && ended.reason, 'timeLimit')
  assert.equal(model.requests.length, 2)
})

test('omitted options are those of the patient policy', () => {
  const { notes } = errorPolicy({ maxRetries: 6 })
  assert.deepEqual(notes, ['Errors: retry, at most 6 retries in a row.'])
  assert.deepEqual(errorPolicy().notes, errorPolicy(errorPolicies.patient).notes)
})

test('an invalid policy is rejected', () => {
  const policies: readonly unknown[] = [
    'lazy',
    'constructor',
    { onError: 'panic' },
    { maxRetries: -1 },
    { maxRetries: Number.NaN },
    { backoffMs: -1 },
    { maxBackoffMs: Number.NaN },
  ]
  for (const policy of policies) {
    assert.throws(
      () => errorPolicy(policy as 'strict'),
      (error: AgentError) => error.code === 'AGENT_INVALID_OPTION' && error.message.startsWith('errorPolicy:'),
      JSON.stringify(policy),
    )
  }
})
