import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { budget } from './budget.ts'
import { callLimit } from './call-limit.ts'
import { clockedStore, gatedModel, valueOf } from './limits.fixture.ts'
import { rateLimit } from './rate-limit.ts'
import { runLimit } from './run-limit.ts'

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

const limits: { readonly [name: string]: readonly [limit: (store: SessionStore) => Use, stored: string] } = {
  runLimit: [(store) => runLimit({ store, maxRuns: 1 }), 'runLimit all'],
  callLimit: [(store) => callLimit({ store, maxCalls: 1 }), 'callLimit test/gated'],
}

suite('by default', () => {
  for (const [name, [limit, stored]] of Object.entries(limits)) {
    test(`${name} has a lease of 30 seconds and waits for a minute`, async (t) => {
      const [store, model] = [clockedStore(), gatedModel()]
      const agent = createAgent({ model, use: [limit(store)] })
      const first = agent.run('first')
      await model.started(1)
      const [slot] = Object.values((await valueOf(store, stored)) as { [id: string]: { until: number } })
      assert.equal(slot!.until - store.now, 30_000)
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const second = agent.run('second')
      await settle()
      t.mock.timers.tick(60_000)
      const run = await second
      assert.ok(run.status === 'failed' || run.status === 'stopped')
      const said = run.status === 'failed' ? run.error.message : run.final.message
      assert.match(said, /None ended within 60000 ms/)
      t.mock.timers.reset()
      model.answer('first')
      await first
    })
  }
})

test('a call that a limit rejects has the form of an answer 429 without a time to wait', async () => {
  const [store, model] = [memoryStore(), gatedModel()]
  const agent = createAgent({ model, use: [callLimit({ store, maxCalls: 1, maxWaitMs: 0 })] })
  const first = agent.run('first')
  await model.started(1)
  const second = await agent.run('second')
  assert.ok(second.status === 'failed')
  assert.deepEqual(second.error.value, { provider: 'test', model: 'gated' })
  model.answer('first')
  await first
})

test('a budget without a limit is rejected, and so is a limit with an option that does not exist', () => {
  const store = memoryStore()
  const made: readonly (() => unknown)[] = [
    () => budget({ store }),
    () => budget({ store, maxCost: 1, maxTime: 1 } as never),
    () => runLimit({ store, maxRuns: 1, max: 1 } as never),
    () => callLimit({ store, maxCalls: 1, max: 1 } as never),
    () => rateLimit({ store, maxPerMinute: 1 } as never),
  ]
  for (const make of made) assert.throws(make, { code: 'AGENT_INVALID_OPTION' })
})

test('a limit that is not a number lets nothing through', async () => {
  const store = memoryStore()
  for (const limit of [
    budget({ store, maxTokens: Number.NaN }),
    runLimit({ store, maxRuns: Number.NaN, maxWaitMs: 0 }),
    callLimit({ store, maxCalls: Number.NaN, maxWaitMs: 0 }),
    rateLimit({ store, maxTokensPerMinute: Number.NaN }),
  ])
    assert.notEqual((await createAgent({ model: scriptedModel(['ok']), use: [limit] }).run('Go.')).status, 'completed')
})
