import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../effects/effects.ts'
import type { HookContext } from '../hooks/context.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const retries = hook('onError', (ctx) => ctx.retry(), { name: 'retries' })
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'done' })
const calling = [{ toolCalls: [{ name: 'work' }] }, 'Done.']
const runWith = (...use: readonly Use[]) =>
  createAgent({ model: scriptedModel(calling), use: [work, ...use] }).run('Go.')

test('a run whose onError hook always retries is stopped after 32 retries in a row', async () => {
  let calls = 0
  const broken = hook('beforeStep', () => {
    calls++
    throw new Error('broken')
  })
  const run = await runWith(broken, retries)
  assert.ok(run.status === 'stopped')
  assert.deepEqual([calls, run.final.reason, run.final.by], [33, 'retryLimit', 'hookloop'])
  assert.deepEqual(run.final.value, { value: 32, limit: 32 })
})

test('a retry waits for the time that the onError hook has set, even for 1 ms, and not without one', async () => {
  const waits = async (afterMs: number): Promise<number> => {
    let calls = 0
    const flaky = hook('beforeStep', (ctx) => {
      if (calls++ === 0) throw new Error('busy')
      return ctx
    })
    const later = hook('onError', (ctx) => ctx.retry({ afterMs }))
    const agent = createAgent({ model: scriptedModel(['Done.']), use: [flaky, later] })
    const { run, records } = await recordedRun(agent, 'Go.')
    assert.equal(run.status, 'completed')
    return records.filter((record) => record.t === 'begin' && record.key.kind === 'sleep').length
  }
  assert.deepEqual([await waits(0), await waits(1)], [0, 1])
})

test('a result whose hook at afterToolUse still fails after 32 retries is withheld, without a further wait', async () => {
  const clock = fakeClock({ auto: true })
  const broken = hook('afterToolUse', () => {
    throw new Error('broken')
  })
  const waits = hook('onError', (ctx) => ctx.retry({ afterMs: 1_000 }))
  const agent = createAgent({ model: scriptedModel(calling), use: [work, broken, waits] })
  const run = await agent.run('Go.', { effects: liveEffects({ clock }) })
  assert.ok(run.status === 'stopped')
  const [execution] = run.state.lastStep!.toolExecutions
  assert.deepEqual([run.final.reason, execution!.withheld, clock.now()], ['retryLimit', true, 32_000])
})

test('a run whose clock fails while it waits for a retry fails', async () => {
  const clock = { now: () => 0, sleep: async () => Promise.reject(new Error('no time')) }
  const broken = hook('beforeStep', () => {
    throw new Error('broken')
  })
  const waits = hook('onError', (ctx) => ctx.retry({ afterMs: 1_000 }))
  const agent = createAgent({ model: scriptedModel(calling), use: [work, broken, waits] })
  const run = await agent.run('Go.', { effects: liveEffects({ clock }) })
  assert.ok(run.status === 'failed')
  assert.deepEqual([run.error.code, run.error.message], ['HOOK_FAILED', 'no time'])
})

test('a hook that succeeds after 32 retries lets the run continue', async () => {
  let calls = 0
  const flaky = hook('beforeStep', (ctx) => {
    if (++calls <= 32) throw new Error('not yet')
    return ctx
  })
  assert.equal((await runWith(flaky, retries)).status, 'completed')
})

test('guards do not judge arguments that a failed hook left behind', async () => {
  const judged: string[] = []
  const broken = hook('beforeToolUse', () => {
    throw new Error('broken')
  })
  const ignores = hook('onError', (ctx) => ctx.ignore())
  const judge = guard('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.name), ctx))
  const run = await runWith(broken, ignores, judge)
  assert.deepEqual([judged, run.state.execution!.steps.at(0)!.toolExecutions[0]!.status], [[], 'failed'])
})

test('a vote that a retried trigger repeats counts once, and another vote of the same hook counts too', async () => {
  let calls = 0
  const again = (ctx: HookContext<'afterStep'>) => (calls === 0 ? ctx : ctx.stop('Really enough.'))
  const stops = hook('afterStep', (ctx) => again(ctx.stop('Enough.')), { name: 'stops', priority: 1 })
  const flaky = hook('afterStep', (ctx) => {
    if (calls++ === 0) throw new Error('not yet')
    return ctx
  })
  const run = await runWith(stops, flaky, retries)
  assert.ok(run.status === 'stopped')
  const votes = run.final.votes.filter(({ source }) => source === 'stops').map(({ message }) => message)
  assert.deepEqual(votes, ['Enough.', 'Really enough.'])
})

test('after a question at beforeStep was answered, beforeStep fires again for its step, and before every further one', async () => {
  const steps: number[] = []
  const asks = guard('beforeStep', (ctx) => (ctx.state.stepCount === 0 ? ctx.ask('Start?') : ctx))
  const counts = hook('beforeStep', (ctx) => (steps.push(ctx.state.stepCount), ctx))
  const agent = createAgent({ model: scriptedModel(calling), use: [work, asks, counts, approval('suspend')] })
  const first = await agent.run('Go.')
  assert.ok(first.status === 'suspended')
  const run = await agent.resume(first, { answers: { [first.pending[0]!.id]: 'allow' } })
  assert.deepEqual([run.status, steps], ['completed', [0, 0, 1]])
})

test('a run that is stopped at beforeExecution after its input was approved takes no step', async () => {
  const fired: string[] = []
  const asks = guard('onUserInput', (ctx) => ctx.ask('Really?'))
  const stops = hook('beforeExecution', (ctx) => ctx.stop('Not today.'))
  const counts = hook('beforeStep', (ctx) => (fired.push('beforeStep'), ctx))
  const model = scriptedModel(['Done.'])
  const agent = createAgent({ model, use: [asks, stops, counts, approval('suspend')] })
  const first = await agent.run('Go.')
  assert.ok(first.status === 'suspended')
  const run = await agent.resume(first, { answers: { [first.pending[0]!.id]: 'allow' } })
  assert.ok(run.status === 'stopped')
  assert.deepEqual([run.final.message, fired, model.requests.length], ['Not today.', [], 0])
})

test('a loop that leaves agent.iterate() early has a run whose onPause hooks have ended', async () => {
  const seen: string[] = []
  const pauses = hook('onPause', async (ctx) => {
    await soon()
    seen.push('paused')
    return ctx
  })
  const states = createAgent({ model: scriptedModel(calling), use: [work, pauses] }).iterate('Go.')
  for await (const { stepCount } of states) if (stepCount === 1) break
  const run = await states.run
  assert.deepEqual([run.status, seen], ['suspended', ['paused']])
})

test('a run that is cancelled while it is suspended at beforeInference takes no step', async () => {
  const cancel = new AbortController()
  const asks = guard('beforeInference', (ctx) => ctx.ask('Really?'))
  const cancels = hook('onPause', (ctx) => (cancel.abort(), ctx))
  const model = scriptedModel(['Done.'])
  const agent = createAgent({ model, use: [asks, cancels, approval('suspend')] })
  const run = await agent.run('Go.', { signal: cancel.signal })
  assert.deepEqual([run.status, run.state.stepCount, model.requests.length], ['cancelled', 0, 0])
})

test('a run that is cancelled while it is suspended at onStop ends, and no denial is counted', async () => {
  const cancel = new AbortController()
  const asks = guard('onStop', (ctx) => ctx.ask('Really?'))
  const cancels = hook('onPause', (ctx) => (cancel.abort(), ctx))
  const model = scriptedModel(['Done.', 'Again.'])
  const agent = createAgent({ model, use: [asks, cancels, approval('suspend')] })
  const run = await agent.run('Go.', { signal: cancel.signal })
  assert.ok(run.status === 'cancelled')
  assert.deepEqual([run.final.reason, model.requests.length], ['userRequested', 1])
  assert.deepEqual(
    run.final.votes.map(({ decision }) => decision),
    ['forbidContinuation', 'allowStop'],
  )
})

test('a run that is cancelled while it is suspended again, without an answer, ends', async () => {
  const cancel = new AbortController()
  let isImpatient = false
  const asks = guard('beforeStep', (ctx) => ctx.ask('Really?'))
  const cancels = hook('onPause', (ctx) => (isImpatient && cancel.abort(), ctx))
  const agent = createAgent({ model: scriptedModel(['Done.']), use: [asks, cancels, approval('suspend')] })
  const first = await agent.run('Go.')
  assert.ok(first.status === 'suspended')
  assert.equal((await agent.resume(first)).status, 'suspended')
  isImpatient = true
  assert.equal((await agent.resume(first, { signal: cancel.signal })).status, 'cancelled')
})
