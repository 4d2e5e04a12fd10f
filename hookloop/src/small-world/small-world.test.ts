import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isSoak } from '../sessions/stores/kills.fixture.ts'
import { changes } from './changes.fixture.ts'
import { explore, report, wrongs, type Explored } from './runner.fixture.ts'
import { kindNames } from './scenarios.fixture.ts'
import { specs } from './specs.fixture.ts'
import { storeKinds } from './stores.fixture.ts'

// A model checker: small agents, whose processes die at every line that they store, whose code changes before they are
// resumed, and whose questions are answered in every way. `npm run test:soak` runs all scenarios in memory, or in the store that
// HOOKLOOP_TEST_STORE names (sqlite or postgres), and some in the others. To see one of them:
//   node --conditions=hookloop-source hookloop/src/small-world/run.fixture.ts crash A:ask allow 5 guard-blocks

const promise = 'no call runs twice or without agreement, and no result, answer or cost is lost'

/** Every how many-th scenario is run in a normal test: a prime, so that it hits every part of small agents. */
const STRIDE = 499
/** The same in databases, in a soak test: what differs there are the stores, which have tests of their own. */
const STRIDE_OF_STORES = 1_009

if (isSoak) {
  const whole = storeKinds.find((each) => each === process.env['HOOKLOOP_TEST_STORE']) ?? 'memory'
  const explored: Explored[] = []
  for (const kind of kindNames) {
    test(`in every scenario of the kind "${kind}", ${promise}`, async () => {
      const found = await explore({ stride: 1, kinds: [kind], store: whole })
      explored.push(found)
      assert.equal(wrongs(found.violations).join('\n'), '')
    })
  }
  for (const store of storeKinds.filter((each) => each !== whole)) {
    test(`in every ${STRIDE_OF_STORES}th scenario in the store "${store}", ${promise}`, async () => {
      const found = await explore({ stride: STRIDE_OF_STORES, store })
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
