import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../core/agent/capability.ts'
import type { Run } from '../core/agent/run.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { liveEffects } from '../core/effects/effects.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../models/scripted.ts'
import { fakeClock } from '../testing/fake-clock.ts'
import { errorPolicy } from './error-policy.ts'
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

test('without a policy failed calls are reported to the model only', async () => {
  assert.equal((await run([bad, bad, bad, bad, bad, 'done'])).status, 'completed')
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

test('a successful call restarts the count', async () => {
  const ended = await run([bad, bad, good, bad, bad, good, 'done'], errorPolicy({ maxRetries: 2 }))
  assert.equal(ended.status, 'completed')
})
