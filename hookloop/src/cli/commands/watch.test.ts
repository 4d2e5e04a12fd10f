import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteStore } from '../../sessions/stores/sqlite-store.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

/** A project with a store, and a function that appends events to its session. */
function scene() {
  const project = new ScriptedProject()
  const store = sqliteStore(project.path('s.db'))
  let seq = 0
  const add = async (
    ...events: readonly { readonly type: string; readonly [name: string]: unknown }[]
  ): Promise<void> => {
    const writer = await store.open('talk', { create: true })
    const place = { at: 1_700_000_000_000, session: 'talk', run: 'r', step: 1 }
    await writer.append([], {
      events: events.map((each) => ({ text: JSON.stringify({ seq: ++seq, ...place, ...each }) })),
    })
    await writer.release()
  }
  return { project, store, add, options: ['--store', project.path('s.db')] }
}

describe('hookloop watch', { concurrency: 2 }, () => {
  test('prints the events of a session that another process writes, one per line, until it is deleted', async () => {
    const { project, store, add, options } = scene()
    await add({ type: 'stepStarted' }, { type: 'text', delta: 'Hel' }, { type: 'responded', text: 'Hello \u001b[31m' })
    const watching = project.start(['watch', 'talk', ...options])
    await watching.wrote(/responded/)
    await add({ type: 'finished', record: { status: 'completed' } })
    await watching.wrote(/finished/)
    await store.delete('talk')
    const { code, stdout } = await watching.ended
    await store.close()
    assert.equal(code, 0)
    const lines = stdout.trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => line.trim().split(/ {2,}/).slice(0, 4).join(' ')),
      ['1 22:13:20.000 step 1 stepStarted', '3 22:13:20.000 step 1 responded', '4 22:13:20.000 step 1 finished'],
    )
    assert.ok(!stdout.includes('\u001b'))
  })

  test('--json prints each event as one line of JSON, --after skips the first ones, and --no-follow exits at the end', async () => {
    const { project, store, add, options } = scene()
    await add({ type: 'stepStarted' }, { type: 'text', delta: 'Hel' }, { type: 'responded', text: 'Hello' })
    await store.close()
    const { code, stdout } = await project.hookloop(['watch', '--json', '--after', '1', '--no-follow', ...options])
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { seq: number; type: string })
    assert.deepEqual([code, events.map(({ seq, type }) => `${seq} ${type}`)], [0, ['2 text', '3 responded']])
  })

  test('waits for a session that does not exist yet, and with --no-follow says that there is none', async () => {
    const { project, store, add, options } = scene()
    await store.list()
    const missing = await project.hookloop(['watch', 'talk', '--no-follow', ...options])
    assert.notEqual(missing.code, 0)
    assert.match(missing.stderr, /There is no session "talk"/)
    const watching = project.start(['watch', 'talk', ...options])
    await add({ type: 'stepStarted' })
    await watching.wrote(/stepStarted/)
    watching.kill('SIGINT')
    await watching.ended
    await store.close()
  })
})
