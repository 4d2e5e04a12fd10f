import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { storeOf } from '../session/dying-store.fixture.ts'
import { rewindSession } from '../session/rewind-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { ReadOptions, SessionStore } from '../stores/store.ts'
import { readRuns } from './read-runs.ts'
import { followRuns, type LoadedRuns } from './read-session.ts'
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

  test('is read although lines after it are damaged', async () => {
    const { lines } = (await store.read('s'))!
    const [first] = await readRuns(fresh(store).store, 's', { run: 0 })
    const damaged = await storeOf(
      's',
      lines.map((line, i) => (i > first!.lines.last + 1 ? line.replace('x', 'y') : line)),
    )
    assert.deepEqual(await readRuns(damaged, 's', { run: 0 }), [first])
    await assert.rejects(readRuns(damaged, 's', { run: 1 }), { code: 'SESSION_CORRUPT' })
    await assert.rejects(readRuns(damaged, 's'), { code: 'SESSION_CORRUPT' })
  })

  test('is marked as rewound by a line after it', async () => {
    const copy = await storeOf('s', (await store.read('s'))!.lines)
    const [, second] = await readRuns(copy, 's')
    await rewindSession(copy, 's', { at: second!.steps[9]!.seq! })
    const [run] = await readRuns(fresh(copy).store, 's', { run: 1 })
    assert.deepEqual(run!.steps.filter(({ isRewound }) => isRewound !== true).length, 10)
    assert.deepEqual((await readRuns(fresh(copy).store, 's'))[1], run)
  })
})

test('following a session only reads what was appended, and returns the same objects for what has not changed', async () => {
  const store = memoryStore()
  const { store: other, reads, lines } = fresh(store)
  await agentOf(store).run('30', { session: 's' })
  const first = await followRuns(other, 's')
  const [run] = first.collector.runs
  assert.equal(await followRuns(other, 's', first), first)
  await agentOf(store).run('1', { session: 's' })
  const [before, reading] = [lines(), reads.length]
  const again = await followRuns(other, 's', first)
  const [same, second] = again.collector.runs
  assert.equal(same, run)
  assert.equal(second!.stepStarts.length, 2)
  const appended = second!.records.length + 1
  assert.deepEqual([reads.length - reading, lines() - before], [1, appended + 1]) // the line before is compared
  const stored = again.collector.runs.map((each) => toStoredRun(each))
  assert.deepEqual(await readRuns(fresh(store).store, 's'), stored)
})

test('two readers that continue after the same lines do not disturb each other', async () => {
  const store = memoryStore()
  await agentOf(store).run('3', { session: 's' })
  const first = await followRuns(store, 's')
  await agentOf(store).run('1', { session: 's' })
  const both = await Promise.all([followRuns(store, 's', first), followRuns(store, 's', first)])
  const stored = await readRuns(store, 's')
  for (const { collector } of both)
    assert.deepEqual(
      collector.runs.map((run) => toStoredRun(run)),
      stored,
    )
})

test('a run that is followed while it runs is the same as when it is read at once', async () => {
  const store = memoryStore()
  let followed: LoadedRuns | undefined
  const follows = tool({
    name: 'echo',
    description: 'Follows the session.',
    input: { type: 'object' },
    execute: async () => {
      followed = await followRuns(store, 's', followed)
      assert.deepEqual(
        followed.collector.runs.map((run) => toStoredRun(run)),
        await readRuns(store, 's'),
      )
      return 'followed'
    },
  })
  await createAgent({ model, store, use: [follows] }).run('5', { session: 's' })
  const { runs } = (await followRuns(store, 's', followed)).collector
  assert.deepEqual(
    runs.map((run) => toStoredRun(run)),
    await readRuns(store, 's'),
  )
})

test('a session that was deleted and created again is read from its first line', async () => {
  const store = memoryStore()
  await agentOf(store).run('3', { session: 's' })
  await readRuns(store, 's')
  await store.delete('s')
  await agentOf(store).run('5', { session: 's' })
  assert.deepEqual(
    (await readRuns(store, 's')).map(({ steps }) => steps.length),
    [6],
  )
})
