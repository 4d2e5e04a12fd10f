import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { scriptedModel } from '../models/scripted.ts'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import type { Row, RunChange } from './run.types.ts'
import { waiting } from './scenes.fixture.ts'
import { cleaner, newStore, studioFor } from './studio.fixture.ts'

const ref = { session: 'clean-up' }

/** What a page knows of a run after these lines. */
class Known {
  readonly rows: Row[] = []
  status = ''
  text = ''
  readonly runs: number[] = []

  add(line: RunChange): void {
    if (line.type === 'run') this.status = line.run.status
    if (line.type === 'rows') for (const row of line.rows) this.rows[row.index] = row
    if (line.type === 'newRun') this.runs.push(line.run)
    if (line.type === 'event' && line.event.type === 'text') this.text += line.event.delta
  }
}

suite('the stream of a run', () => {
  test('starts at a row, passes on text while it is written, and names the next run', async (t) => {
    const { store, path } = newStore()
    const model = scriptedModel(() => ({ text: 'one two three four', delayMs: 1 }))
    const other = sqliteStore(path)
    t.after(() => other.close())
    const agent = cleaner(other, undefined, model)
    await agent.run('First.', ref)
    await using studio = await studioFor(store)
    const stream = studio.lines('run', { ...ref, from: 1 })
    const known = new Known()
    let run: Promise<unknown> | undefined
    for await (const line of stream) {
      known.add(line)
      run ??= agent.run('Second.', ref)
      if (known.runs.length > 0) break
    }
    await run
    assert.deepEqual([known.rows[0], known.rows[1]?.kind, known.runs], [undefined, 'model', [1]])
  })

  test('ends with "deleted" when the session is deleted', async () => {
    const { store } = await waiting()
    await using studio = await studioFor(store)
    let last: RunChange | undefined
    for await (const line of studio.lines('run', { ...ref, from: 0 })) {
      last = line
      if (line.type === 'rows') await store.delete('clean-up')
    }
    assert.deepEqual(last, { type: 'deleted' })
  })

  test('of a session that does not exist is an error with status 404', async () => {
    await using studio = await studioFor(newStore().store)
    const response = await fetch(`${studio.origin}/stream/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${studio.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ session: 'none', from: 0 }),
    })
    assert.equal(response.status, 404)
  })
})

suite('the streams of lists', () => {
  test('report new, changed and deleted sessions, and questions', async () => {
    const { store, path } = newStore()
    await using studio = await studioFor(store)
    const sessions = studio.lines('sessions', {})
    const inbox = studio.lines('inbox', {})
    assert.deepEqual((await sessions.next()).value, { type: 'page', sessions: [] })
    assert.deepEqual((await inbox.next()).value, { questions: [] })
    await waiting({ store, path })
    for await (const line of sessions)
      if (line.type === 'changed' && line.sessions[0]?.status === 'suspended' && line.sessions[0].pending === 1) break
    for await (const { questions } of inbox) if (questions[0]?.tool === 'bash') break
    const again = studio.lines('sessions', {})
    assert.equal((await again.next()).value?.type, 'page')
    await store.delete('clean-up')
    const { value } = await again.next()
    assert.deepEqual(value, { type: 'changed', sessions: [], deleted: ['clean-up'] })
  })
})
