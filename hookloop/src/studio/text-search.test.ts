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
import { TextSearch } from './text-search.ts'

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

  test('in 16 MB at a time: a page says where the next one continues, and finds nothing twice', async () => {
    const store = memoryStore()
    for (let i = 0; i < 40; i++) {
      const writer = await store.open(`s${i}`, { create: true })
      await writer.append(['{}'], { head: { title: `Session ${i}` } })
      await writer.release()
    }
    let reads = 0
    const large = reading(store, async (id) => {
      reads++
      const text = ['s5', 's39'].includes(id) ? 'needle' : 'hay'
      return { head: {}, lines: [JSON.stringify({ text: text.padEnd(1_000_000, '.') })] }
    })
    const pages: (readonly string[])[] = []
    const counts: number[] = []
    let after: SessionsPosition | undefined
    do {
      reads = 0
      const page: SessionsPage = await listSessions(large, { text: 'needle', ...(after !== undefined && { after }) })
      pages.push(page.sessions.map(({ id }) => id))
      counts.push(reads)
      after = page.next
    } while (after !== undefined)
    assert.deepEqual(counts, [16, 16, 8])
    assert.deepEqual(pages.flat().toSorted(), ['s39', 's5'])
  })

  test('while one watches, and then only what was appended is searched', async () => {
    const { store } = newStore()
    await say(store, 'One.', 'a')
    let lines = 0
    const counted = reading(store, async (...given) => {
      const stored = await store.read(...given)
      lines += stored?.lines.length ?? 0
      return stored
    })
    const search = new TextSearch(counted, 'two')
    const searched = async (updatedAt: number): Promise<readonly [boolean, number]> => {
      lines = 0
      return [await search.finds({ id: 'a', updatedAt }), lines]
    }
    const first = (await store.read('a'))!.lines.length
    assert.deepEqual(await searched(1), [false, first])
    assert.deepEqual(await searched(1), [false, 0])
    await say(store, 'Two.', 'a')
    assert.deepEqual(await searched(2), [true, (await store.read('a'))!.lines.length - first])
    assert.deepEqual(await searched(3), [true, 0])
    await store.close()
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
