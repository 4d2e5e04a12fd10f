import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isSoak } from '../stores/kills.fixture.ts'
import { historyOf } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { Death } from './dying-store.fixture.ts'
import { changedAgent, changes, questions, summaryChanges, work } from './changed-agent.fixture.ts'
import { checkAll, countWrites } from './survive-deploy.fixture.ts'

// What has begun stays as it is recorded; what has not begun is judged and run by the changed agent. The table: an agent, every
// change of it, every point at which its process may die.

const summarizes = ['summarization is added']
const plainChanges = Object.keys(changes)

/** What the agent is before it changes, what may change, and how many of all cases are tried: one of so many. */
const table: readonly {
  readonly what: string
  readonly before: readonly string[]
  readonly changed: readonly string[]
  readonly oneOf: number
}[] = [
  { what: 'acts', before: [], changed: plainChanges, oneOf: 16 },
  ...Object.keys(questions).map((each) => ({
    what: `asks ${each}`,
    before: [each],
    changed: plainChanges,
    oneOf: 64,
  })),
  { what: 'summarizes', before: summarizes, changed: [...Object.keys(summaryChanges), ...plainChanges], oneOf: 32 },
]

for (const { what, before, changed, oneOf } of table) {
  const writes = await countWrites(before)
  const everywhere = Array.from({ length: writes }, (_, i) => i + 1).flatMap((at): readonly Death[] => [
    { at, stored: true },
    { at, stored: false },
  ])
  const some = (nth: number, of: number): readonly Death[] => everywhere.filter((_, i) => isSoak || i % of === nth % of)

  suite(`a session of an agent that ${what}`, () => {
    test('is ended by the same agent, wherever its process dies', async () => {
      assert.ok(writes > 12, String(writes))
      await checkAll({ before, after: before }, some(0, before.length === 0 ? 1 : 4))
    })

    test('is resumed without a lost or repeated effect, whatever changes', async () => {
      for (const [i, name] of changed.entries()) await checkAll({ before, after: [...before, name] }, some(i, oneOf))
    })

    test('is resumed without a lost or repeated effect, if two parts change', async () => {
      for (const [i, one] of changed.entries())
        for (const other of isSoak ? plainChanges : [plainChanges[(i + 7) % plainChanges.length]!])
          await checkAll({ before, after: [...before, other, one] }, some(i, 4 * oneOf))
    })
  })
}

test('is resumed without a lost or repeated effect, if an agent that asked asks no longer and another part changes', async () => {
  for (const question of Object.keys(questions)) {
    const writes = await countWrites([question])
    for (const [i, name] of plainChanges.entries())
      if (isSoak || i % 4 === 0)
        await checkAll({ before: [question], after: [name] }, [{ at: 1 + ((7 * i) % writes), stored: true }])
  }
})

test('the agent that summarizes does so more than once in these tests', async () => {
  const store = memoryStore()
  await work(changedAgent(store, { note: () => undefined }, summarizes), store)
  const { records } = historyOf((await store.read('s'))!.lines, 's')
  const summaries = records.filter((record) => record.t === 'end' && record.key.trigger === 'beforeCompaction')
  assert.ok(summaries.length > 1, String(summaries.length))
})
