import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSoak } from '../stores/kills.fixture.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { changedAgent, changes, summaryChanges, work } from './changed-agent.fixture.ts'
import { checkAll, countWrites } from './survive-deploy.fixture.ts'

const summarizes = ['summarization is added']
const writes = await countWrites(summarizes)
const points = Array.from({ length: writes }, (_, i) => i + 1)
const everywhere = points.flatMap((at) => [
  { at, stored: true },
  { at, stored: false },
])

test('the run in these tests is compacted more than once', async () => {
  const store = memoryStore()
  await work(changedAgent(store, { note: () => undefined }, summarizes), store)
  const { records } = readSession((await store.read('s'))!.lines, 's')
  const summaries = records.filter((record) => record.type === 'end' && record.key.includes('/beforeCompaction/'))
  assert.ok(summaries.length > 1, String(summaries.length))
})

test('the same agent ends a session with summaries from every point at which a process may die', async () => {
  await checkAll({ before: summarizes, after: summarizes }, everywhere)
})

for (const name of Object.keys(summaryChanges)) {
  test(`a session with summaries is resumed without a lost or repeated effect, if ${name}`, async () => {
    await checkAll({ before: summarizes, after: [...summarizes, name] }, everywhere)
  })
}

test('a session with summaries is resumed without a lost or repeated effect, if any other part of the agent changes', async () => {
  for (const [i, name] of Object.keys(changes).entries()) {
    const some = everywhere.filter((_, at) => isSoak || at % 6 === i % 6)
    await checkAll({ before: summarizes, after: [...summarizes, name] }, some)
  }
})

test('a session with summaries is resumed without a lost or repeated effect, if summarization and another part change', async () => {
  let pairs = 0
  for (const one of Object.keys(summaryChanges)) {
    for (const other of Object.keys(changes)) {
      const some = everywhere.filter((_, at) => isSoak || at % 30 === pairs % 30)
      await checkAll({ before: summarizes, after: [...summarizes, other, one] }, some)
      pairs++
    }
  }
})
