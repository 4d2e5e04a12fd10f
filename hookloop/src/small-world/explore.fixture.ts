// Runs every n-th scenario, and prints what was found:
//   node --conditions=hookloop-source hookloop/src/small-world/explore.fixture.ts 100 [text in the name]
// `--kind` and `--agent` choose some of them, and can be repeated; `--every 5` runs every fifth agent. `--store` is memory, sqlite or postgres. `--threads` is their
// number. `--first`: it ends with the first violation. `--json`: what was found is printed as an object.
import { parseArgs } from 'node:util'
import { explore, report } from './runner.fixture.ts'
import { storeKinds } from './stores.fixture.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kind: { type: 'string', multiple: true },
    agent: { type: 'string', multiple: true },
    store: { type: 'string' },
    threads: { type: 'string' },
    every: { type: 'string', default: '1' },
    first: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const [stride = '1', only = ''] = positionals
const { kind: kinds, agent: agents, first: isUntilFirst } = values
const store = storeKinds.find((each) => each === values.store)
const threads = values.threads === undefined ? undefined : Number(values.threads)
const everyAgent = Number(values.every)
const found = await explore({ stride: Number(stride), everyAgent, only, kinds, agents, store, isUntilFirst }, threads)
console.log(values.json ? JSON.stringify(found) : report(found))
