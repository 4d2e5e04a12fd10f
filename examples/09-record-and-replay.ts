// Everything that is not a function of the state is an effect, and a session records it. So a run can be replayed: no
// model, no tool, the same decisions and the same state. An agent that has changed differs from the record, and the replay
// says where.
import assert from 'node:assert/strict'
import { createAgent, hook, tool } from 'hookloop'
import { replay } from 'hookloop/replay'
import { memoryStore } from 'hookloop/sessions'
import { scriptedModel } from 'hookloop/testing'

let rolls = 0
const dice = tool({
  name: 'dice',
  description: 'Rolls a die.',
  input: { type: 'object' },
  execute: () => {
    rolls++
    return 1 + Math.floor(Math.random() * 6)
  },
})

const store = memoryStore()
const agent = createAgent({
  model: scriptedModel([{ toolCalls: [{ name: 'dice' }, { name: 'dice' }] }, 'That is my luck.']),
  use: [dice],
  store,
})

const live = await agent.run('Roll twice.', { session: 'luck' })
const stored = (await store.read('luck'))!
for (const line of stored.lines) {
  const { t, key, value } = JSON.parse(line)
  console.log(t.padEnd(8), key?.kind ?? '', value === undefined ? '' : JSON.stringify(value).slice(0, 70))
}

const { record, run } = await replay(stored, { agent })
assert.equal(record.status, 'complete')
assert.equal(JSON.stringify(run.state), JSON.stringify(live.state))
console.log(`replayed to the same state: ${rolls} rolls in all, the model was not called again`)

const nosy = hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Cheat.' }), { name: 'nosy' })
const other = await replay(stored, { agent: agent.with(nosy) })
console.log(`with another hook: ${other.record.status}, ${other.record.message?.replace(/(:.*?):.*/, '$1')}`)
