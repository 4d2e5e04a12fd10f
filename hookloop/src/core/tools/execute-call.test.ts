import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../effects/effects.ts'
import { hook, observe } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Json } from '../../values/json.ts'
import type { Schema } from '../../values/schema.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { tool, type ToolRun } from '../agent/tool.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'

test('a tool can copy what it gets, change a part, and call another tool with it', async () => {
  const updates: unknown[] = []
  const inner = async (run: ToolRun) => {
    const { progress, spend, describe, ...rest } = run
    progress('half')
    spend({ inputTokens: 3 })
    return [describe().tools.length, rest.idempotencyKey, rest.signal.aborted, rest.state.stepCount]
  }
  const outer = tool({
    name: 'outer',
    description: 'Calls another tool.',
    input: { type: 'object' },
    timeoutMs: 60_000,
    execute: (_args, run) => inner({ ...run, progress: (update) => updates.push(update) }),
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'outer' }] }, 'Done.'])
  const { execution } = (await createAgent({ model, use: [outer] }).run('Go.')).state
  const [tools, key, aborted, steps] = execution!.steps.at(0)!.toolExecutions[0]!.output as readonly Json[]
  assert.deepEqual([tools, aborted, steps, updates], [1, false, 0, ['half']])
  assert.match(key as string, /\/0\/call-1-1$/) // run, step, call
  assert.equal(execution!.usage.inputTokens, 23) // two model calls of 10, and the tool's own
})

/** Whether a run has ended by now, without waiting for anything but what is ready. */
async function hasEnded(running: Promise<unknown>): Promise<boolean> {
  let isOver = false
  void running.then(() => (isOver = true))
  for (let i = 0; i < 50; i++) await soon()
  return isOver
}

/** Runs a tool that cleans up for a while after its signal has aborted, with a clock that a test advances. */
async function resultAfterCleaningUp(ms: number): Promise<ToolExecution> {
  const clock = fakeClock()
  const started = Promise.withResolvers<void>()
  const slow = tool({
    name: 'slow',
    description: 'Takes its time.',
    input: { type: 'object' },
    timeoutMs: 5_000,
    execute: async (_args, { signal }) => {
      started.resolve()
      await once(signal, 'abort')
      await clock.sleep(ms)
      return 'cleaned up'
    },
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'slow' }] }, 'Done.'])
  const running = createAgent({ model, use: [slow] }).run('Go.', { effects: liveEffects({ clock }) })
  await started.promise
  await soon() // then its time limit is set
  await clock.advance(5_000)
  await clock.advance(999)
  if (ms > 1_000) assert.equal(await hasEnded(running), false)
  await clock.advance(1)
  assert.equal(await hasEnded(running), true)
  return (await running).state.execution!.steps.at(0)!.toolExecutions[0]!
}

test('a tool that times out has one second to clean up, and its answer within that second counts', async () => {
  const [inTime, late] = [await resultAfterCleaningUp(999), await resultAfterCleaningUp(2_000)]
  assert.deepEqual([inTime.status, inTime.output], ['ok', 'cleaned up'])
  assert.equal(late.status, 'failed')
  assert.match(late.output as string, /did not end within 5000 ms and was aborted/)
})

test('the duration of a call is that of its tool', async () => {
  const durations: number[] = []
  const quick = tool({ name: 'quick', description: 'Quick.', input: { type: 'object' }, execute: () => 'done' })
  const observer = observe('afterToolUse', (ctx) => void durations.push(ctx.durationMs!))
  const started = performance.now()
  const model = scriptedModel([{ toolCalls: [{ name: 'quick' }] }, 'Done.'])
  await createAgent({ model, use: [quick, observer] }).run('Go.')
  const [duration] = durations
  assert.ok(duration! >= 0 && duration! <= performance.now() - started, String(duration))
})

test('an asynchronous schema has 60 seconds', async () => {
  const clock = fakeClock()
  const asked = Promise.withResolvers<void>()
  const input: Schema = {
    '~standard': {
      version: 1,
      vendor: 'slow',
      validate: () => (asked.resolve(), new Promise(() => undefined)),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
    },
  }
  const work = tool({ name: 'work', description: 'Works.', input, execute: () => 'done' })
  const model = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'Done.'])
  const running = createAgent({ model, use: [work] }).run('Go.', { effects: liveEffects({ clock }) })
  await asked.promise
  await clock.advance(59_999)
  assert.equal(await hasEnded(running), false)
  await clock.advance(1)
  assert.equal(await hasEnded(running), true)
  const [result] = (await running).state.execution!.steps.at(0)!.toolExecutions
  assert.deepEqual(result!.status, 'failed')
  assert.match(result!.output as string, /within 60000 ms/)
})

test('a tool is not started or recorded after the run was cancelled, and the result names the signal', async () => {
  const started: string[] = []
  const controller = new AbortController()
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object' },
    execute: () => started.push('work'),
  })
  const cancels = hook('aroundToolUse', async (_ctx, next) => {
    controller.abort()
    return next()
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'Done.'])
  const agent = createAgent({ model, use: [work, cancels] })
  const { run, records } = await recordedRun(agent, 'Go.', { signal: controller.signal })
  const [result] = run.state.execution!.steps.at(0)!.toolExecutions
  assert.deepEqual([run.status, started, result?.status, result?.by], ['cancelled', [], 'blocked', 'signal'])
  const kinds = records.flatMap((record) => (record.t === 'begin' ? [record.key.kind] : []))
  assert.deepEqual(kinds, ['tool']) // the call with its hooks, and no attempt
})
