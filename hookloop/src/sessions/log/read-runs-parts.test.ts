import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { StoredRun } from '../../core/state/stored-run.ts'
import type { ReadOptions, SessionStore } from '../stores/store.ts'
import { readRuns } from './read-runs.ts'
import { loadSession } from './read-session.ts'
import type { SessionReader } from './session-reader.ts'
import { toStoredRun } from './stored-run.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })

/** A model that makes as many calls as the input says, and then answers. */
const model = scriptedModel(({ messages: list }) => {
  const messages = list.slice()
  const input = messages.findLastIndex(({ role }) => role === 'user')
  const [part] = messages[input]!.content
  const made = messages.length - input - 1
  const isDone = made / 2 >= Number(part?.type === 'text' ? part.text : 0)
  return isDone ? 'Done.' : { toolCalls: [{ name: 'echo', args: { made, type: 'input', text: 'x'.repeat(500) } }] }
})

function agentOf(store: SessionStore) {
  return createAgent({ model, store, use: [echo, guards({ maxSteps: null })] })
}

/** The same store for a process that has read nothing yet, and what it reads. */
function fresh(store: SessionStore): {
  readonly store: SessionStore
  readonly reads: (ReadOptions | undefined)[]
  readonly lines: () => number
} {
  const reads: (ReadOptions | undefined)[] = []
  let lines = 0
  const read: SessionStore['read'] = async (id, options) => {
    reads.push(options)
    const stored = await store.read(id, options)
    lines += stored?.lines.length ?? 0
    return stored
  }
  return { store: { ...store, read }, reads, lines: () => lines }
}

suite('one run of a long session', () => {
  const store = memoryStore()
  before(async () => {
    for (const calls of [2, 150, 0, 3, 200, 1]) await agentOf(store).run(`${calls}`, { session: 's' })
  })

  test('is the same as in the list of all runs', async () => {
    const all = await readRuns(fresh(store).store, 's')
    assert.deepEqual(
      all.map(({ steps }) => steps.length),
      [3, 151, 1, 4, 201, 2],
    )
    for (const [i, run] of all.entries()) {
      assert.deepEqual(await readRuns(fresh(store).store, 's', { run: i }), [run])
      assert.deepEqual(await readRuns(fresh(store).store, 's', { run: i - all.length }), [run])
    }
  })

  test('is read from the last snapshot on if it is the last one', async () => {
    const { store: other, lines } = fresh(store)
    const [run] = await readRuns(other, 's', { run: -1 })
    const all = (await store.read('s'))!.lines.length
    assert.equal(run!.index, 5)
    assert.ok(lines() < all / 2, `${lines()} of ${all} lines`)
  })
})

test('a session that was read before is read on: only what was appended, into the same runs', async () => {
  const store = memoryStore()
  const { store: other, reads, lines } = fresh(store)
  await agentOf(store).run('30', { session: 's' })
  const known = (await loadSession(other, 's', { runs: 'all' }))!
  const [run] = known.recorded.runs
  await agentOf(store).run('1', { session: 's' })
  const [before, reading] = [lines(), reads.length]
  assert.equal(await loadSession(other, 's', { known, runs: 'all' }), known)
  const [same, second] = known.recorded.runs
  assert.equal(same, run)
  assert.equal(second!.stepStarts.length, 2)
  const appended = second!.records.length + 1
  assert.deepEqual([reads.length - reading, lines() - before], [1, appended + 1]) // the line before is compared
  assert.deepEqual(await readRuns(fresh(store).store, 's'), storedIn(known))
})

test('a run that is followed while it runs is the same as when it is read at once', async () => {
  const store = memoryStore()
  let known: SessionReader | undefined
  const follows = tool({
    name: 'echo',
    description: 'Follows the session.',
    input: { type: 'object' },
    execute: async () => {
      known = await loadSession(store, 's', { known, runs: 'all' })
      assert.deepEqual(storedIn(known!), await readRuns(store, 's'))
      return 'followed'
    },
  })
  await createAgent({ model, store, use: [follows] }).run('5', { session: 's' })
  known = await loadSession(store, 's', { known, runs: 'all' })
  assert.deepEqual(storedIn(known!), await readRuns(store, 's'))
})

function storedIn({ recorded }: SessionReader): readonly StoredRun[] {
  return recorded.runs.map((run) => toStoredRun(run))
}
