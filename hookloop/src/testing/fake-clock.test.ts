import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorPolicy } from '../capabilities/error-policy.ts'
import { createAgent } from '../create-agent.ts'
import { liveEffects } from '../core/effects/effects.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { fakeClock } from './fake-clock.ts'

test('a fake clock moves only when it is advanced', async () => {
  const clock = fakeClock({ startAt: 7 })
  await new Promise((resolve) => setTimeout(resolve, 5))
  assert.equal(clock.now(), 7)
  await clock.advance(3)
  assert.equal(clock.now(), 10)
  assert.equal(fakeClock().now(), 0)
})

test('sleeps end in the order of their end, ties in the order of their start', async () => {
  const clock = fakeClock()
  const woken: string[] = []
  for (const [name, ms] of [
    ['late', 30],
    ['early', 10],
    ['middle', 20],
    ['early too', 10],
  ] as const) {
    void clock.sleep(ms).then(() => woken.push(name))
  }
  await clock.advance(30)
  assert.deepEqual(woken, ['early', 'early too', 'middle', 'late'])
})

test('no sleep ends early, and advance waits for the work of those that ended', async () => {
  const clock = fakeClock()
  const done: string[] = []
  void clock.sleep(10).then(async () => {
    await Promise.resolve()
    done.push('worked')
  })
  await clock.advance(9)
  assert.deepEqual(done, [])
  await clock.advance(1)
  assert.deepEqual(done, ['worked'])
})

test('the work after one sleep is done before the next sleep ends', async () => {
  const clock = fakeClock()
  const log: string[] = []
  for (const name of ['a', 'b']) {
    void clock.sleep(5).then(async () => {
      log.push(`${name} wakes`)
      await Promise.resolve()
      log.push(`${name} is done`)
    })
  }
  await clock.advance(5)
  assert.deepEqual(log, ['a wakes', 'a is done', 'b wakes', 'b is done'])
})

test('an aborted sleep ends at once, also one that was aborted before it started', async () => {
  const clock = fakeClock()
  const controller = new AbortController()
  const sleeping = clock.sleep(1000, controller.signal)
  controller.abort()
  await sleeping
  await clock.sleep(1000, controller.signal)
  assert.equal(clock.now(), 0)
})

test('an auto clock moves by the length of each sleep', async () => {
  const clock = fakeClock({ auto: true, startAt: 5 })
  await clock.sleep(60_000)
  assert.equal(clock.now(), 60_005)
  await clock.sleep(1)
  assert.equal(clock.now(), 60_006)
})

test('a run that backs off for minutes is tested in no time on an auto clock', async () => {
  const clock = fakeClock({ auto: true })
  const model = scriptedModel([{ error: 'busy' }, { error: 'busy' }, 'done', 'done'])
  const agent = createAgent({ model, use: [errorPolicy({ backoffMs: 60_000, maxBackoffMs: 600_000 })] })
  const run = await agent.run('x', { effects: liveEffects({ clock }) })
  assert.equal(run.status, 'completed')
  assert.equal(clock.now(), 180_000)
})

test('on an auto clock a limit that does not fire takes no time', async () => {
  const clock = fakeClock({ auto: true })
  const agent = createAgent({ model: scriptedModel(['done']), use: [guard('beforeStep', async (ctx) => ctx)] })
  const run = await agent.run('x', { effects: liveEffects({ clock }) })
  assert.equal(run.state.execution?.final?.at, 0)
})

test('on an auto clock a guard that answers a moment later is waited for', async () => {
  const slow = guard('beforeStep', async (ctx) => {
    await new Promise((resolve) => setImmediate(resolve))
    return ctx
  })
  const agent = createAgent({ model: scriptedModel(['done']), use: [slow] })
  const run = await agent.run('x', { effects: liveEffects({ clock: fakeClock({ auto: true }) }) })
  assert.equal(run.status, 'completed')
})

test('on an auto clock a guard that waits for a real timer does not time out', async () => {
  const slow = guard('beforeStep', async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    return ctx
  })
  const agent = createAgent({ model: scriptedModel(['done']), use: [slow] })
  const run = await agent.run('x', { effects: liveEffects({ clock: fakeClock({ auto: true }) }) })
  assert.equal(run.status, 'completed')
})

test('a guard times out and blocks when a fake clock passes its timeout', async () => {
  const clock = fakeClock()
  const model = scriptedModel(['never'])
  const agent = createAgent({
    model,
    use: [guard('beforeStep', () => new Promise(() => undefined), { name: 'stuck' })],
  })
  const running = agent.run('x', { effects: liveEffects({ clock }) })
  await new Promise((resolve) => setImmediate(resolve))
  await clock.advance(60_000)
  const run = await running
  assert.equal(run.status, 'stopped')
  assert.equal(run.state.execution?.final?.by, 'stuck')
  assert.equal(model.requests.length, 0)
})
