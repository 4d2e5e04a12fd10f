import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { budget } from './budget.ts'
import { callLimit } from './call-limit.ts'
import { rateLimit } from './rate-limit.ts'
import { runLimit } from './run-limit.ts'

const store = memoryStore()
const limits: { readonly [name: string]: (key: never) => Use } = {
  budget: (key) => budget({ store, key, maxTokens: 1_000_000 }),
  callLimit: (key) => callLimit({ store, key, maxCalls: 10 }),
  rateLimit: (key) => rateLimit({ store, key, maxRequestsPerMinute: 10 }),
  runLimit: (key) => runLimit({ store, key, maxRuns: 10 }),
}

suite('a limit without a key for a run fails instead of being shared by all such runs', () => {
  for (const [name, limit] of Object.entries(limits)) {
    test(name, async () => {
      for (const made of [undefined, '', null, 5, Promise.resolve('ann')]) {
        const model = scriptedModel(['ok'])
        const run = await createAgent({ model, use: [limit((() => made) as never)] }).run('Go.')
        assert.equal(model.requests.length, 0, 'the model is not called')
        const said = [...run.ledger.map(({ error }) => error), run.status === 'failed' ? run.error.message : '']
        assert.match(said.join('\n'), RegExp(`${name}: "key" must be, or return, a non-empty string, not `))
        assert.notEqual(run.status, 'completed')
      }
    })
  }
})
