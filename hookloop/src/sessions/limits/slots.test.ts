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
})

suite('the release of a slot', () => {
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
