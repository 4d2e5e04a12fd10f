import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { startedTimers } from '../../system/started-timers.fixture.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { effectOf, keyOf, processOf } from './effects.fixture.ts'
import { liveEffects, looseEffects, type Effects, type TimeLimit } from './effects.ts'
import { systemClock } from './run-time.ts'

function limit(ms: number): TimeLimit {
  return { ms, key: { ...keyOf('', 'timeout'), hook: 'limit' } }
}

test('work that answers in time gives its answer and does not move the time', async () => {
  const { effects, clock } = processOf()
  const { promise, resolve } = Promise.withResolvers<string>()
  const waiting = effects.withTimeout(promise, limit(100))
  await clock.advance(99)
  resolve('in time')
  assert.equal(await waiting, 'in time')
  await clock.advance(500)
  assert.equal(effects.now(), 1000)
})

test('work that does not answer in time is given up with the key and the limit', async () => {
  const { effects, clock } = processOf()
  const waiting = effects.withTimeout(new Promise(() => undefined), limit(100))
  const refused = assert.rejects(waiting, {
    code: 'HOOK_TIMED_OUT',
    value: { hook: 'limit', ms: 100 },
    message: /100 ms/,
  })
  await clock.advance(100)
  await refused
  assert.equal(effects.now(), 1100)
})

test('a sleep ends at once when the run is cancelled, without an error', async () => {
  const { effects, cancel } = processOf()
  const sleeping = effects.sleep(keyOf('nap', 'sleep'), 100)
  cancel()
  await sleeping
  assert.equal(effects.checkEnd(), 'cancel')
  await effects.sleep(keyOf('second nap', 'sleep'), 100)
})

test('a scope has its own time, and who waited for it takes it over', async () => {
  const { effects, clock } = processOf()
  const [a, b] = [effects.scope(), effects.scope()]
  await clock.advance(10)
  await a.perform(effectOf(keyOf('a')), () => 1)
  assert.deepEqual([a.now(), b.now(), effects.now()], [1010, 1000, 1000])
  effects.join(a)
  await clock.advance(10)
  await b.perform(effectOf(keyOf('b')), () => 1)
  assert.deepEqual([a.now(), b.now(), effects.now()], [1010, 1020, 1010])
  effects.join(b)
  effects.join(a) // the latest time counts, whatever the order
  assert.equal(effects.scope().now(), 1020)
})

test('ids follow from the run, the subagent and a counter, so no two are the same', () => {
  const { effects } = processOf()
  const child = (n: number): Effects => effects.child([{ step: 0, call: 'a', n, agent: 'x' }], undefined)
  const ids = [effects, child(0), child(1)].flatMap((each) => [each.agentId, each.newId(), each.newId()])
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(ids.every((id) => id.startsWith('run')))
})

test('what is done again in a step has another key, and the same ones after the checkpoint', () => {
  const { effects } = processOf()
  const keys = (): unknown[] => [
    effects.keyOf(keyOf('a')).n,
    effects.scope().keyOf(keyOf('a')).n,
    effects.keyOf(keyOf('b')).n,
  ]
  assert.deepEqual(keys(), [0, '0 #1', 0])
  effects.nextStep()
  assert.deepEqual(keys(), [0, '0 #1', 0])
})

test('runs have ids of their own unless one is given', async () => {
  const idOf = async (id?: string): Promise<string> => {
    const run = await createAgent({ model: scriptedModel(['done']) }).run('x', {
      effects: liveEffects(id === undefined ? {} : { id }),
    })
    return run.state.execution!.id
  }
  assert.notEqual(await idOf(), await idOf())
  assert.equal(await idOf('x'), await idOf('x'))
})

test('the signal of the run is handed to every effect', async () => {
  const { effects, cancel } = processOf()
  const aborted = await effects.perform(effectOf(keyOf('a')), async (signal) => {
    cancel()
    return signal.aborted
  })
  assert.equal(aborted, true)
})

test('the system clock sleeps for the given time, and not at all once it is aborted', async () => {
  const before = systemClock.now()
  await systemClock.sleep(20)
  assert.ok(systemClock.now() - before >= 18)
  const controller = new AbortController()
  const sleeping = systemClock.sleep(60_000, controller.signal)
  controller.abort()
  await sleeping
  await systemClock.sleep(60_000, controller.signal)
})

test('a limit without end, or of more milliseconds than a timer takes, does not fire at once', async () => {
  const effects = looseEffects()
  for (const ms of [Infinity, 2 ** 31]) {
    assert.equal(await effects.withTimeout(delay(20, 'answer'), limit(ms)), 'answer')
  }
})

test('a limit that did not fire leaves no timer behind', async () => {
  const effects = looseEffects()
  const left = await startedTimers(() => effects.withTimeout(Promise.resolve('x'), limit(50_000)))
  assert.equal(left(), 0)
})

test('a hook sees the time of the last effect, not the time by the clock', async () => {
  const clock = fakeClock({ startAt: 1000 })
  const seen: number[] = []
  const look = async (ctx: { readonly now: number }): Promise<void> => {
    await clock.advance(1)
    seen.push(ctx.now)
  }
  const agent = createAgent({
    model: scriptedModel(async () => {
      await clock.advance(500)
      return 'done'
    }),
    use: [
      hook('beforeStep', async (ctx) => (await look(ctx), ctx)),
      hook('afterInference', async (ctx) => (await look(ctx), ctx)),
      hook('afterStep', async (ctx) => (await look(ctx), ctx)),
    ],
  })
  const run = await agent.run('x', { effects: liveEffects({ clock }) })
  assert.deepEqual(seen, [1000, 1501, 1501])
  assert.equal(run.state.execution?.startedAt, 1000)
  assert.equal(run.state.execution?.final?.at, 1501)
})
