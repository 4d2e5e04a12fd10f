import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isSoak } from '../sessions/stores/kills.fixture.ts'
import { changes } from './changes.fixture.ts'
import { explore, report, wrongs, type Explored } from './runner.fixture.ts'
import { kindNames } from './scenarios.fixture.ts'
import { specs } from './specs.fixture.ts'

// A model checker: small agents, whose processes die at every line that they store, whose code changes before they are
// resumed, and whose questions are answered in every way. `npm run test:soak` runs all scenarios. To see one of them:
//   node --conditions=hookloop-source hookloop/src/small-world/run.fixture.ts crash A:ask allow 5 guard-blocks

const promise = 'no call runs twice or without agreement, and no result, answer or cost is lost'

/** Every how many-th scenario is run in a normal test: a prime, so that it hits every part of small agents. */
const STRIDE = 211

if (isSoak) {
  const explored: Explored[] = []
  for (const kind of kindNames) {
    test(`in every scenario of the kind "${kind}", ${promise}`, async () => {
      const found = await explore({ stride: 1, kinds: [kind] })
      explored.push(found)
      assert.equal(wrongs(found.violations).join('\n'), '')
    })
  }
  after(() => explored.forEach((each) => console.log(report(each))))
} else {
  test(`in every small agent, and in every ${STRIDE}th of its scenarios, ${promise}`, async () => {
    const { violations, agents, counts, variants } = await explore({ stride: STRIDE })
    assert.equal(wrongs(violations).join('\n'), '')
    assert.equal(agents.length, specs.length)
    assert.deepEqual(Object.keys(counts).toSorted(), kindNames.toSorted())
    assert.deepEqual(
      changes.filter((change) => !variants.includes(change)),
      [],
    )
  })
}
