import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { type SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { appendSessionStart, lockSession, wasInterrupted, type LockedSession } from './session-lock.ts'

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
