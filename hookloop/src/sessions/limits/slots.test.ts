import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { systemClock } from '../../core/effects/run-time.ts'
import type { Json } from '../../values/json.ts'
import type { SessionStore } from '../stores/store.ts'
import { clockedStore, valueOf } from './limits.fixture.ts'
import { startedTimers } from '../../system/started-timers.fixture.ts'
import { Slots, type Taken } from './slots.ts'

const { signal } = new AbortController()
const atOnce = { maxWaitMs: 0, signal }
const LEASE_MS = 30_000

function slotsOf(store: SessionStore, max = 1): Slots {
  return new Slots({ store, max, leaseMs: LEASE_MS })
}

async function taken(taking: Promise<Taken>): Promise<() => Promise<void>> {
  const result = await taking
  assert.ok('release' in result, 'no slot was free')
  return result.release
}

type SlotTable = { readonly [id: string]: { readonly owner: string; readonly until: number } }

async function tableOf(store: SessionStore): Promise<SlotTable> {
  return (await valueOf(store, 'n')) as SlotTable
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
}

suite('a slot', () => {
  test('that another process took over is not renewed by the first one, and its own renewals continue', async (t) => {
    const store = clockedStore()
    t.mock.timers.enable({ apis: ['setInterval'] })
    const [first, second] = [slotsOf(store), slotsOf(store)]
    const releaseFirst = await taken(first.take('n', { id: 'run', ...atOnce }))
    const before = (await tableOf(store))['run']!
    const releaseSecond = await taken(second.take('n', { id: 'run', ...atOnce }))
    const own = (await tableOf(store))['run']!
    assert.notEqual(own.owner, before.owner)
    store.now += 1_000
    t.mock.timers.tick(LEASE_MS / 3)
    await settle()
    assert.deepEqual(await tableOf(store), { run: { owner: own.owner, until: store.now + LEASE_MS } })
    await releaseSecond()
    await releaseFirst()
  })

  test('that was released is not renewed again', async (t) => {
    const store = clockedStore()
    t.mock.timers.enable({ apis: ['setInterval'] })
    const release = await taken(slotsOf(store).take('n', { id: 'a', ...atOnce }))
    await release()
    t.mock.timers.tick(LEASE_MS)
    await settle()
    assert.deepEqual(await tableOf(store), {})
  })

  test('is renewed the next time if the store fails once', async (t) => {
    const store = clockedStore()
    t.mock.timers.enable({ apis: ['setInterval'] })
    const release = await taken(slotsOf(store).take('n', { id: 'a', ...atOnce }))
    const failing = t.mock.method(store, 'update', () => Promise.reject(new Error('down')), { times: 1 })
    t.mock.timers.tick(LEASE_MS / 3 - 1)
    assert.equal(failing.mock.callCount(), 0)
    t.mock.timers.tick(1)
    await settle()
    assert.equal(failing.mock.callCount(), 1)
    store.now += LEASE_MS / 2
    t.mock.timers.tick(LEASE_MS / 3)
    await settle()
    assert.equal((await tableOf(store))['a']!.until, store.now + LEASE_MS)
    await release()
  })

  test('does not keep the process alive, and neither does one that was waited for', async () => {
    const slots = slotsOf(clockedStore())
    const left = await startedTimers(async () => {
      await taken(slots.take('n', { id: 'a', maxWaitMs: 50_000, signal }))
      assert.ok('used' in (await slots.take('n', { id: 'b', ...atOnce })))
    })
    assert.equal(left(), 0)
  })

  test('that was taken while its run was cancelled is released', async () => {
    const store = clockedStore()
    const cancel = new AbortController()
    const cancelling: SessionStore = {
      ...store,
      async update(name, change) {
        if (cancel.signal.aborted) await settle()
        const value = await store.update(name, change)
        cancel.abort(new Error('cancelled'))
        return value
      },
    }
    await assert.rejects(slotsOf(cancelling).take('n', { id: 'a', maxWaitMs: 0, signal: cancel.signal }), /cancelled/)
    assert.deepEqual(await tableOf(store), {})
  })

  test('of a run that was cancelled before is not asked for', async () => {
    const store = clockedStore()
    await assert.rejects(slotsOf(store).take('n', { id: 'a', maxWaitMs: 0, signal: AbortSignal.abort() }), {
      name: 'AbortError',
    })
    assert.equal(store.updates, 0)
  })
})

suite('the release of a slot', () => {
  test('ends when the store has freed it', async () => {
    const store = clockedStore()
    const freed = Promise.withResolvers<void>()
    let isSlow = false
    const slow: SessionStore = {
      ...store,
      async update(name, change) {
        if (isSlow) await freed.promise
        return store.update(name, change)
      },
    }
    const release = await taken(slotsOf(slow).take('n', { id: 'a', ...atOnce }))
    isSlow = true
    let isReleased = false
    const releasing = release().then(() => (isReleased = true))
    await settle()
    assert.equal(isReleased, false)
    freed.resolve()
    await releasing
    assert.deepEqual(await tableOf(store), {})
  })

  test('ends after five seconds if the store does not answer, and at once if it fails', async (t) => {
    const store = clockedStore()
    const [hanging, failing] = [
      await taken(slotsOf(store).take('n', { id: 'a', ...atOnce })),
      await taken(slotsOf(store, 2).take('n', { id: 'b', ...atOnce })),
    ]
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let isReleased = false
    const answers: readonly (() => Promise<Json>)[] = [
      () => new Promise(() => undefined),
      () => Promise.reject(new Error('down')),
    ]
    let call = 0
    t.mock.method(store, 'update', () => answers[call++]!())
    const releasing = hanging().then(() => (isReleased = true))
    await failing()
    t.mock.timers.tick(4_999)
    await settle()
    assert.equal(isReleased, false)
    t.mock.timers.tick(1)
    await releasing
  })
})

suite('waiting for a slot', () => {
  test('asks the store after 50 ms, then after twice as long each time, up to a second, or after half of that by chance', async (t) => {
    const store = clockedStore()
    const slots = slotsOf(store)
    const release = await taken(slots.take('n', { id: 'a', ...atOnce }))
    const wait = async (random: number): Promise<readonly number[]> => {
      const pauses: number[] = []
      const cancel = new AbortController()
      const chance = t.mock.method(Math, 'random', () => random)
      const sleep = t.mock.method(systemClock, 'sleep', async (ms: number) => {
        if (pauses.push(ms) === 7) cancel.abort()
      })
      await assert.rejects(slots.take('n', { id: 'b', maxWaitMs: Infinity, signal: cancel.signal }), {
        name: 'AbortError',
      })
      chance.mock.restore()
      sleep.mock.restore()
      return pauses
    }
    assert.deepEqual(await wait(1), [50, 100, 200, 400, 800, 1_000, 1_000])
    assert.deepEqual(await wait(0), [25, 50, 100, 200, 400, 500, 500])
    await release()
  })

  test('ends when its time is over, and says how many slots others have', async (t) => {
    const store = clockedStore()
    const slots = slotsOf(store, 2)
    const releases = await Promise.all(['a', 'b'].map((id) => taken(slots.take('n', { id, ...atOnce }))))
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const waiting = slots.take('n', { id: 'c', maxWaitMs: 10, signal })
    await settle()
    t.mock.timers.tick(10)
    const result = await waiting
    assert.ok('used' in result)
    assert.equal(result.used, 2)
    for (const release of releases) await release()
  })

  test('is in order: those of one process get a slot as they asked for it, and one that is cancelled leaves the line', async (t) => {
    const store = clockedStore()
    // Only a release in this process ends a pause.
    t.mock.method(systemClock, 'sleep', (_ms: number, woken: AbortSignal) =>
      woken.aborted
        ? Promise.resolve()
        : new Promise<void>((resolve) => woken.addEventListener('abort', () => resolve(), { once: true })),
    )
    const slots = slotsOf(store)
    const cancel = new AbortController()
    const got: string[] = []
    let release = await taken(slots.take('n', { id: 'a', ...atOnce }))
    const free = new Map<string, () => Promise<void>>()
    const wait = (id: string, of = signal): Promise<void> =>
      taken(slots.take('n', { id, maxWaitMs: Infinity, signal: of })).then((next) => {
        got.push(id)
        free.set(id, next)
      })
    const waiting = [wait('b'), wait('c'), wait('d')]
    const cancelled = assert.rejects(wait('x', cancel.signal), { name: 'AbortError' })
    waiting.push(wait('e'))
    await settle()
    cancel.abort()
    await cancelled
    for (const [i, id] of ['b', 'c', 'd', 'e'].entries()) {
      assert.deepEqual(got, ['b', 'c', 'd', 'e'].slice(0, i))
      await release()
      await waiting[i]
      release = free.get(id)!
    }
    await release()
    assert.deepEqual([got, await tableOf(store)], [['b', 'c', 'd', 'e'], {}])
  })
})
