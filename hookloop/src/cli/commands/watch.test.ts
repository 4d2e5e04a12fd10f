import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteStore } from '../../sessions/stores/sqlite-store.ts'
import { EventWriter } from '../../sessions/log/event-writer.fixture.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

/** A project with a store. */
function scene() {
  const project = new ScriptedProject()
  return { project, store: sqliteStore(project.path('s.db')), options: ['--store', project.path('s.db')] }
}

describe('hookloop watch', { concurrency: 2 }, () => {
  test('prints the events of a session that another process writes, one per line, until it is deleted', async () => {
    const { project, store, options } = scene()
    const writer = await EventWriter.open(store, 'talk')
    await writer.startTurn('r')
    await writer.addPieces('Hel')
    await writer.add('Hello \u001b[31m')
    const watching = project.start(['watch', 'talk', ...options])
    await watching.wrote(/Hello/)
    await writer.add('last')
    await watching.wrote(/last/)
    await writer.release()
    await store.delete('talk')
    const { code, stdout } = await watching.ended
    await store.close()
    assert.equal(code, 0)
    const lines = stdout.trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => line.trim().split(/ {2,}/).slice(0, 4).join(' ')),
      [
        '1000000 00:00:00.001 step 0 input',
        '2000000 00:00:00.001 step 0 answered',
        '3000000 00:00:00.001 step 0 answered',
      ],
    )
    assert.ok(!stdout.includes('\u001b'))
  })

  test('--json prints each event as one line of JSON, --after skips the first ones, and --no-follow exits at the end', async () => {
    const { project, store, options } = scene()
    const writer = await EventWriter.open(store, 'talk')
    await writer.startTurn('r')
    const after = String(writer.last)
    await writer.addPieces('Hel')
    await writer.add('Hello')
    await writer.release()
    await store.close()
    const { code, stdout } = await project.hookloop(['watch', '--json', '--after', after, '--no-follow', ...options])
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { seq: number; type: string })
    assert.deepEqual([code, events.map(({ seq, type }) => `${seq} ${type}`)], [0, ['1000100 text', '2000000 answered']])
  })
})
