import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { SessionsPage, SessionsPosition } from './api.types.ts'
import { completed } from './scenes.fixture.ts'
import { listSessions, watchSessions } from './sessions.ts'
import { newStore, reading } from './studio.fixture.ts'

async function say(store: SessionStore, text: string, session: string): Promise<void> {
  await createAgent({ model: scriptedModel(() => text), store }).run('Speak.', { session })
}

suite('sessions are found by what was said', () => {
  for (const [kind, store] of Object.entries({
    memory: memoryStore(),
    SQLite: newStore().store,
  }))
    test(`in a store of kind ${kind}: in messages, arguments and results, but not in names and ids`, async () => {
      await completed({ store, path: '' }, 'clean-up')
      await say(store, 'Über „alles“: \\n\t"quoted" 🎉', 'other')
      const found = async (text: string) =>
        (await listSessions(store, { text })).sessions.map(({ id }) => id).toSorted()
      for (const text of [
        'THEN PUBLISH',
        'all done',
        'git push',
        'ran ls',
        'Agents NEVER push',
        '" [checked]',
        'rm b.txt',
      ])
        assert.deepEqual(await found(text), ['clean-up'], text)
      for (const text of ['über „ALLES“', '\\n\t"quoted"', '🎉']) assert.deepEqual(await found(text), ['other'], text)
      for (const text of [
        'tool-call',
        'guards.maxSteps',
        'inputTokens',
        'call-1-1',
        'assistant',
        'no-push',
        'scripted',
      ])
        assert.deepEqual(await found(text), [], text)
      await store.close()
    })

  test('in 100 sessions at a time: a page says where the next one continues, and finds nothing twice', async () => {
    const store = memoryStore()
    for (let i = 0; i < 250; i++) {
      const writer = await store.open(`s${i}`, { create: true })
      const text = ['s5', 's239'].includes(`s${i}`) ? 'needle' : 'hay'
      await writer.append([JSON.stringify({ text })], { head: { title: `Session ${i}` } })
      await writer.release()
    }
    const pages: (readonly string[])[] = []
    let after: SessionsPosition | undefined
    do {
      const page: SessionsPage = await listSessions(store, { text: 'needle', ...(after !== undefined && { after }) })
      pages.push(page.sessions.map(({ id }) => id))
      after = page.next
    } while (after !== undefined)
    assert.deepEqual([pages.length, pages.flat().toSorted()], [3, ['s239', 's5']]) // those of one millisecond are in no order
  })

  test('and a session in which it is said later appears in the list', async () => {
    const { store } = newStore()
    await say(store, 'One.', 'a')
    const stream = watchSessions(store, { text: 'two' }, async () => true)
    assert.deepEqual((await stream.next()).value, { type: 'page', sessions: [] })
    await say(store, 'Two.', 'a')
    for await (const change of stream) {
      assert.deepEqual(
        change.sessions.map(({ id }) => id),
        ['a'],
      )
      break
    }
    await store.close()
  })

  test('or not at all if a session is damaged, which hides no other', async () => {
    const { store } = newStore()
    await say(store, 'Two.', 'a')
    const damaged = reading(store, async (id, options) => {
      if (id === 'b') throw new Error('damaged')
      return store.read(id, options)
    })
    await say(store, 'Two.', 'b')
    const { sessions } = await listSessions(damaged, { text: 'two' })
    assert.deepEqual(
      sessions.map(({ id }) => id),
      ['a'],
    )
    await store.close()
  })
})
