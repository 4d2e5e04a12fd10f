import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSoak } from '../sessions/stores/kills.fixture.ts'
import { changes } from './changes.fixture.ts'
import { explore, report, wrongs } from './runner.fixture.ts'
import { kindNames } from './scenarios.fixture.ts'

// A model checker: small agents, whose processes die at every line that they store, whose code changes before they are
// resumed, and whose questions are answered in every way. `npm run test:soak small-world` runs all scenarios in memory, and those
// of every fifth agent in each database: what differs there are the stores. To see one of them:
//   node --conditions=hookloop-source hookloop/src/small-world/run.fixture.ts crash A:ask allow 5 guard-blocks

const promise = 'no call runs twice or without agreement, and no result, answer or cost is lost'

const chosen = {
  slice: { stride: 149, everyAgent: 3 },
  memory: { stride: 1 },
  sqlite: { stride: 1, everyAgent: 5, store: 'sqlite' },
  postgres: { stride: 1, everyAgent: 5, store: 'postgres' },
} as const

for (const name of isSoak ? (['memory', 'sqlite', 'postgres'] as const) : (['slice'] as const)) {
  test(`in the small world (${name}), ${promise}`, async () => {
    const found = await explore(chosen[name])
    if (isSoak) console.log(`${name}\n${report(found)}`)
    assert.equal(wrongs(found.violations).join('\n'), '')
    assert.deepEqual(Object.keys(found.counts).toSorted(), kindNames.toSorted())
    const missed = changes.filter((change) => !found.variants.includes(change))
    assert.deepEqual(missed, name === 'slice' || name === 'memory' ? [] : changes.slice(1))
  })
}
