import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSoak } from '../stores/kills.fixture.ts'
import { changes } from './changed-agent.fixture.ts'
import { checkAll, countWrites } from './survive-deploy.fixture.ts'

const writes = await countWrites()
const points = Array.from({ length: writes }, (_, i) => i + 1)
const names = Object.keys(changes)

test('the same agent ends a session from every point at which a process may die', async () => {
  assert.ok(writes > 12, String(writes))
  await checkAll(
    { after: [] },
    points.flatMap((at) => [
      { at, stored: true },
      { at, stored: false },
    ]),
  )
})

for (const name of names) {
  test(`a session is resumed under its id, without a lost or repeated effect, if ${name}`, async () => {
    await checkAll(
      { after: [name] },
      points.flatMap((at) => [
        { at, stored: true },
        { at, stored: false },
      ]),
    )
  })
}

test('a session is resumed under its id, without a lost or repeated effect, if any two parts of the agent change', async () => {
  let pairs = 0
  for (const [i, one] of names.entries()) {
    for (const other of names.slice(i + 1)) {
      const some = points.filter((at) => isSoak || at % 8 === pairs % 8) // every pair, and every point with many pairs
      await checkAll(
        { after: [one, other] },
        some.map((at) => ({ at, stored: true })),
      )
      pairs++
    }
  }
})
