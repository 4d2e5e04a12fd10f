import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sessionBusy, type SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { appendSessionStart, lockSession, wasInterrupted, whenFree, type LockedSession } from './session-lock.ts'

/** A store whose writes and releases take their time, and what it has done. */
function slowStore(): { readonly store: SessionStore; readonly done: string[] } {
  const [inner, done] = [memoryStore(), [] as string[]]
  const store: SessionStore = {
    ...inner,
    async open(id, options) {
      const writer = await inner.open(id, options)
      return {
        ...writer,
        async append(...what) {
          for (let i = 0; i < 5; i++) await soon()
          await writer.append(...what)
          done.push('append')
        },
        async release() {
          await soon()
          await writer.release()
          done.push('release')
        },
      }
    },
  }
  return { store, done }
}

suite('a session that was locked', () => {
  const locking = { id: 's', create: true }
  /** Stores the first record, and adds another one that is not stored yet. */
  const write = async (session: LockedSession): Promise<void> => {
    appendSessionStart(session, { agent: 'a', at: 1 })
    await session.journal.flush()
    session.journal.append({ t: 'suspended', at: 1 })
  }

  test('is free when the work has ended, after its records were stored', async () => {
    const { store, done } = slowStore()
    const result = await lockSession(store, locking, async (session) => {
      await write(session)
      return 'done'
    })
    assert.deepEqual([result, done], ['done', ['append', 'append', 'release']])
  })

  test('is free when the work has failed, without what was not stored', async () => {
    const { store, done } = slowStore()
    const work = lockSession(store, locking, async (session) => {
      await write(session)
      throw new Error('failed')
    })
    await assert.rejects(work, /failed/)
    assert.deepEqual(done, ['append', 'release'])
  })

  test('gets its first record once', async () => {
    const { store } = slowStore()
    for (let i = 0; i < 2; i++) await lockSession(store, locking, write)
    const kinds = (await store.read('s'))!.lines.map((line) => (JSON.parse(line) as { readonly t: string }).t)
    assert.deepEqual(kinds, ['session', 'suspended', 'suspended'])
  })

  test('says that a run had been left by a process that did not end it, and not of a run that was not', async () => {
    const store = memoryStore()
    const dying = dyingStore(store, { at: /"t":"final"/, stored: false })
    const over = (each: SessionStore) => createAgent({ model: scriptedModel(['Done.', 'Again.']), store: each })
    await Promise.race([over(dying).run('Go.', { session: 's' }), dying.died])
    await soon()
    const agent = over(store)
    const resumed = await agent.resume('s')
    const next = await agent.run('Go on.', { session: 's' })
    assert.deepEqual([resumed, next].map(wasInterrupted), [true, false])
  })
})

suite('whenFree', () => {
  const busy = (): Promise<never> => Promise.reject(sessionBusy('s', 'another process'))
  const isBusy = { code: 'SESSION_BUSY' }

  test('tries again after 2 ms, then after twice as long each time, up to 100 ms', async (t) => {
    const pauses: number[] = []
    t.mock.method(globalThis, 'setTimeout', ((act: () => void, ms: number) => {
      pauses.push(ms)
      queueMicrotask(act)
    }) as typeof setTimeout)
    const result = await whenFree(() => (pauses.length < 9 ? busy() : Promise.resolve('free')), { waitMs: 1e9 })
    assert.deepEqual([result, pauses], ['free', [2, 4, 8, 16, 32, 64, 100, 100, 100]])
  })

  test('tries once without a time to wait, and when its signal has aborted, and when it may not wait', async () => {
    for (const options of [
      {},
      { waitMs: 0 },
      { waitMs: 1e9, signal: AbortSignal.abort() },
      { waitMs: 1e9, mayWait: async () => false },
    ]) {
      let attempts = 0
      await assert.rejects(
        whenFree(() => (attempts++, busy()), options),
        isBusy,
      )
      assert.equal(attempts, 1)
    }
  })

  test('passes other errors on at once', async () => {
    for (const error of [new AgentError('SESSION_UNKNOWN', 'none'), new Error('down')])
      await assert.rejects(
        whenFree(() => Promise.reject(error), { waitMs: 1e9 }),
        error,
      )
  })

  test('ends when its time is over', async (t) => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    let attempts = 0
    const act = (): Promise<never> => {
      now += attempts++ === 0 ? 9 : 1
      return busy()
    }
    await assert.rejects(whenFree(act, { waitMs: 10 }), isBusy)
    assert.equal(attempts, 2)
  })
})
