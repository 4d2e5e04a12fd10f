// Runs one scenario and tells its whole story, in the store that HOOKLOOP_TEST_STORE names (default: memory):
//   node --conditions=hookloop-source hookloop/src/small-world/run.fixture.ts crash A:ask allow 5 guard-blocks
import { referenceOf } from './kinds.fixture.ts'
import { nameOf, runScenario, scenarioOf } from './scenarios.fixture.ts'
import { closeStores, freeStores, storeKinds, useStores } from './stores.fixture.ts'

useStores(storeKinds.find((kind) => kind === process.env['HOOKLOOP_TEST_STORE']) ?? 'memory')
const scenario = scenarioOf(process.argv.slice(2))
console.log(nameOf(scenario))
const reference = await referenceOf(scenario.spec, scenario.answers)
const { violations } = await runScenario(scenario, reference, (what) => console.log(what))
console.log(violations.length === 0 ? 'No violation.' : violations.map((each) => `VIOLATION ${each}`).join('\n'))
process.exitCode = violations.length === 0 ? 0 : 1
await freeStores()
await closeStores()
