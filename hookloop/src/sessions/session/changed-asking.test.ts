import { test } from 'node:test'
import { isSoak } from '../stores/kills.fixture.ts'
import { changes, questions } from './changed-agent.fixture.ts'
import { checkAll, countWrites } from './survive-deploy.fixture.ts'

const names = Object.keys(changes)

for (const question of Object.keys(questions)) {
  const before = [question]
  const writes = await countWrites(before)
  const everywhere = Array.from({ length: writes }, (_, i) => i + 1).flatMap((at) => [
    { at, stored: true },
    { at, stored: false },
  ])

  test(`the same agent, which asks ${question}, ends a session from every point at which a process may die`, async () => {
    await checkAll({ before, after: before }, isSoak ? everywhere : everywhere.filter(({ stored }) => stored))
  })

  test(`a session of an agent that asks ${question} is resumed without a lost or repeated effect, if any part changes`, async () => {
    for (const [i, name] of names.entries()) {
      const some = everywhere.filter((_, at) => isSoak || at % 32 === i % 32) // every change, and every point with one or two
      await checkAll({ before, after: [question, name] }, some)
    }
  })

  test(`a session of an agent that asks ${question} is resumed without a lost or repeated effect, if it asks no longer and another part changes`, async () => {
    for (const [i, name] of names.entries()) {
      const some = everywhere.filter((_, at) => isSoak || at % 64 === i % 64)
      await checkAll({ before, after: [name] }, some)
    }
  })
}
