import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { cacheResponses } from '../../capabilities/cache-responses.ts'
import { retry } from '../../capabilities/retry.ts'
import { subagents } from '../../capabilities/subagents/index.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { budget } from './budget.ts'
import { clockedStore, gatedModel } from './limits.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-budget-'))
after(() => rmSync(folder, { recursive: true }))

/** What a call is estimated to need, at least: the answer without a limit. */
const ESTIMATE = 4_096

/** With them, a call is estimated to need 600 tokens and its prompt. */
const settings = { maxOutputTokens: 600 }

/** Answers with 1,000 tokens at one cent each, and waits for `gate` first. */
function model(gate: () => Promise<unknown> = async () => undefined): LanguageModel {
  return {
    provider: 'test',
    modelId: 'spender',
    cost: ({ inputTokens, outputTokens }) => (inputTokens + outputTokens) / 100,
    infer: async () => {
      await gate()
      return {
        content: [{ type: 'text', text: 'ok' }],
        finishReason: 'stop',
        usage: { inputTokens: 400, outputTokens: 600 },
      }
    },
  }
}

async function account(store: SessionStore, key: string): Promise<JsonObject> {
  const { answer: _answer, ...amounts } = (await store.update(`budget ${key}`, (value) => value ?? {})) as JsonObject
  return amounts
}

test('runs of one key share a budget, across sessions and agents, and the run that would exceed it stops', async () => {
  const store = memoryStore()
  const agents = [0, 1].map(() =>
    createAgent({ model: model(), settings, store, use: [budget({ store, key: 'ann', maxTokens: 3_500 })] }),
  )
  const statuses: string[] = []
  for (let i = 0; i < 5; i++) {
    const run = await agents[i % 2]!.run('Go.', { session: `s${i}` })
    statuses.push(run.status)
    if (run.status === 'stopped') {
      assert.deepEqual([run.reason, run.by], ['tokenLimit', 'budget.reserve'])
      assert.match(run.final.message, /The budget ann is used up: 3000 of 3500 tokens/)
    }
  }
  assert.deepEqual(statuses, ['completed', 'completed', 'completed', 'stopped', 'stopped'])
  assert.deepEqual(await account(store, 'ann'), { period: 0, costUsd: 30, tokens: 3_000, reserved: {} })
})

test('without a key each conversation has its own budget', async () => {
  const store = memoryStore()
  const agent = createAgent({ model: model(), settings, store, use: [budget({ store, maxTokens: 1_900 })] })
  const statuses: string[] = []
  for (const session of ['a', 'a', 'a', 'b', 'b', 'b']) statuses.push((await agent.run('Go.', { session })).status)
  assert.deepEqual(statuses, ['completed', 'completed', 'stopped', 'completed', 'completed', 'stopped'])
})

test('two stores that spend at the same time reserve before they call the model, and never exceed the limit', async () => {
  const stores = [0, 1, 2, 3].map(() => sqliteStore(join(folder, 'shared.db')))
  const opened = Promise.withResolvers<void>()
  let [running, most, decided] = [0, 0, 0]
  const gate = async (): Promise<void> => {
    most = Math.max(most, ++running)
    if (++decided === 4) opened.resolve()
    await opened.promise
    running--
  }
  const runs = await Promise.all(
    stores.map(async (store, i) => {
      const use = [budget({ store, key: 'tenant', maxCost: (2 * ESTIMATE + 1_000) / 100, maxWaitMs: 0 })]
      const run = await createAgent({ model: model(gate), store, use }).run('Go.', { session: `s${i}` })
      if (run.status === 'stopped' && ++decided === 4) opened.resolve()
      return run.status
    }),
  )
  assert.deepEqual(runs.toSorted(), ['completed', 'completed', 'stopped', 'stopped'])
  assert.equal(most, 2)
  assert.deepEqual(await account(stores[0]!, 'tenant'), { period: 0, costUsd: 20, tokens: 2_000, reserved: {} })
  for (const store of stores) await store.close()
})

test('a hundred jobs that fit in a budget complete: a call waits for what others reserve, and learns the size of answers', async () => {
  const store = memoryStore()
  const tiny: LanguageModel = {
    ...model(() => new Promise((resolve) => setImmediate(resolve))),
    cost: ({ outputTokens }) => outputTokens / 100_000,
    infer: async () => ({
      content: [{ type: 'text', text: 'ok' }],
      finishReason: 'stop',
      usage: { inputTokens: 10, outputTokens: 50 }, // 0.0005 USD; the first call is expected to cost 0.04
    }),
  }
  const agent = createAgent({ model: tiny, use: [budget({ store, key: 'jobs', maxCost: 0.1 })] })
  const runs = await Promise.all(Array.from({ length: 100 }, () => agent.run('Go.')))
  assert.deepEqual(new Set(runs.map(({ status }) => status)), new Set(['completed']))
  const { costUsd, reserved } = await account(store, 'jobs')
  assert.deepEqual([Math.round(Number(costUsd) * 1e6), reserved], [50_000, {}])
})

suite('a reservation', () => {
  test('of a process that died expires', async () => {
    const store = memoryStore()
    const dead = { costUsd: 0, tokens: 5_000, until: Date.now() - 1 }
    const alive = { costUsd: 0, tokens: 5_000, until: Date.now() + 60_000 }
    const use = [budget({ store, key: 'ann', maxTokens: 8_000, maxWaitMs: 0 })]
    const agent = createAgent({ model: model(), store, use })
    const set = (reserved: Json): Promise<Json> =>
      store.update('budget ann', () => ({ period: 0, costUsd: 0, tokens: 0, reserved }))
    await set({ other: alive })
    assert.equal((await agent.run('Go.', { session: 'a' })).status, 'stopped')
    await set({ other: dead })
    assert.equal((await agent.run('Go.', { session: 'b' })).status, 'completed')
  })

  test('ends if the model call fails', async () => {
    const store = memoryStore()
    const failing = model(async () => Promise.reject(new Error('down')))
    const run = await createAgent({
      model: failing,
      store,
      use: [budget({ store, key: 'ann', maxTokens: 8_000 })],
    }).run('Go.')
    assert.equal(run.status, 'failed')
    assert.deepEqual(await account(store, 'ann'), { period: 0, costUsd: 0, tokens: 0, reserved: {} })
  })

  test('is not held by a run that waits for an approval', async () => {
    const store = memoryStore()
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      execute: () => 'paid',
    })
    const asks: LanguageModel = {
      ...model(),
      infer: async () => ({
        content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'pay', input: {} }],
        finishReason: 'tool-calls',
        usage: { inputTokens: 400, outputTokens: 600 },
      }),
    }
    const asking = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asking' })
    const use = [pay, asking, approval('suspend'), budget({ store, key: 'ann', maxTokens: 20_000 })]
    const run = await createAgent({ model: asks, store, use }).run('Go.', { session: 's' })
    assert.equal(run.status, 'suspended', run.final?.message ?? '')
    assert.deepEqual((await account(store, 'ann'))['reserved'], {})
  })
})

suite('all model calls of a run are counted, and nothing stays reserved', () => {
  const settled = (tokens: number): JsonObject => ({ period: 0, costUsd: 0, tokens, reserved: {} })

  test('those of subagents and of hooks, on the account of the run', async () => {
    const [store, gated] = [memoryStore(), gatedModel()]
    const asks = hook(
      'afterStep',
      async (ctx) => {
        if (ctx.state.stepCount === 1) await ctx.infer({ prompt: 'Good?' })
        return ctx
      },
      { name: 'asks' },
    )
    const helper = { description: 'Helps.', instructions: 'Help.' }
    const use = [budget({ store, maxTokens: 20_000 }), subagents({ agents: { helper } }), asks]
    const running = createAgent({ model: gated, use }).run('Go.')
    const spawn = { subagent: 'helper', prompt: 'Help.' }
    await gated.started(1)
    gated.answer('Go.', {
      content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'spawn_subagent', input: spawn }],
      finishReason: 'tool-calls',
    })
    for (const [i, name] of ['Help.', 'Good?', 'Go.'].entries()) {
      await gated.started(i + 2)
      gated.answer(name)
    }
    const run = await running
    assert.equal(run.status, 'completed')
    assert.deepEqual(await account(store, `conversation ${run.state.agentId}`), settled(4_000))
  })

  test('each attempt, but not one that the provider rejected', async () => {
    const [store, gated] = [memoryStore(), gatedModel()]
    const use = [budget({ store, key: 'ann', maxTokens: 20_000 }), retry({ backoffMs: 0 })]
    const running = createAgent({ model: gated, use }).run('Go.')
    await gated.started(1)
    gated.answer('Go.', new AgentError('MODEL_OVERLOADED', 'busy'))
    await gated.started(2)
    gated.answer('Go.')
    await running
    assert.deepEqual(await account(store, 'ann'), settled(1_000))
  })

  test('not an answer that comes from a cache', async () => {
    const [store, gated] = [memoryStore(), gatedModel()]
    const use = [budget({ store, key: 'ann', maxTokens: 20_000 }), cacheResponses()]
    const agent = createAgent({ model: gated, use })
    const running = agent.run('Go.')
    await gated.started(1)
    gated.answer('Go.')
    await running
    assert.equal((await agent.run('Go.')).status, 'completed')
    assert.deepEqual(await account(store, 'ann'), settled(1_000))
  })

  test('the prompt of a call that was aborted', async () => {
    const [store, gated] = [memoryStore(), gatedModel()]
    const cancel = new AbortController()
    const use = [budget({ store, key: 'ann', maxTokens: 20_000 })]
    const running = createAgent({ model: gated, use }).run('x'.repeat(4_000), { signal: cancel.signal })
    await gated.started(1)
    cancel.abort()
    await running
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
    const { tokens, reserved } = await account(store, 'ann')
    assert.ok((tokens as number) >= 1_000 && (tokens as number) < 1_100)
    assert.deepEqual(reserved, {})
  })
})

test('a call is counted once if its process died after it was counted and before its answer was stored', async () => {
  const [store, gated] = [memoryStore(), gatedModel()]
  let dies = true
  const counting: SessionStore = {
    ...store,
    async update(name, change) {
      const before = await account(store, 'ann')
      const value = (await store.update(name, change)) as JsonObject
      if (!dies || value['tokens'] === (before['tokens'] ?? 0)) return value
      return new Promise(() => undefined) // counted, and the process gets no further
    },
  }
  const agent = createAgent({ model: gated, store, use: [budget({ store: counting, key: 'ann', maxTokens: 20_000 })] })
  const dead = new AbortController()
  const left = agent.run('Go.', { session: 's', signal: dead.signal })
  await gated.started(1)
  gated.answer('Go.')
  while ((await account(store, 'ann'))['tokens'] !== 1_000) await new Promise((resolve) => setImmediate(resolve))
  dies = false
  await store.close() // releases the lock, as the end of the process does
  const resumed = agent.resume('s')
  const ended = Promise.race([resumed.then(() => true), gated.started(2).then(() => false)])
  if (!(await ended)) gated.answer('Go.') // its answer was not stored yet
  assert.equal((await resumed).status, 'completed')
  assert.deepEqual(await account(store, 'ann'), { period: 0, costUsd: 0, tokens: 1_000, reserved: {} })
  dead.abort()
  await left
})

test('a reservation that has expired is counted when its call is settled after all, by the clock of the store', async () => {
  const [store, gated] = [clockedStore(), gatedModel()]
  const agent = createAgent({ model: gated, use: [budget({ store, key: 'ann', maxTokens: 5_000, maxWaitMs: 0 })] })
  const slow = agent.run('slow')
  await gated.started(1)
  assert.equal((await agent.run('full')).status, 'stopped')
  store.now += 900_000
  const other = agent.run('other')
  await gated.started(2)
  gated.answer('slow')
  gated.answer('other')
  await Promise.all([slow, other])
  assert.deepEqual(await account(store, 'ann'), { period: 0, costUsd: 0, tokens: 2_000, reserved: {} })
})

test('a run that would exceed the cost stops at the limit of the cost, and one that uses all of it completes', async () => {
  const store = memoryStore()
  const run = async (key: string, maxCost: number) => {
    const use = [budget({ store, key, maxCost, maxTokens: 100_000 })]
    return createAgent({ model: model(), store, use }).run('Go.', { session: `${key} ${maxCost}` })
  }
  const stopped = await run('ann', 0.5)
  assert.ok(stopped.status === 'stopped' && stopped.reason === 'costLimit')
  const estimate = Number(/the call may need ([\d.]*\d)/.exec(stopped.final.message)![1])
  assert.match(stopped.final.message, /^The budget ann is used up: 0 of 0.5 USD are spent or reserved/)
  assert.equal((await run('ann', estimate)).status, 'completed')
  assert.equal((await run('bob', estimate - 0.001)).status, 'stopped')
})

test('a budget with a period starts again in the next one', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 86_400_000 * 100 })
  const store = memoryStore()
  const use = [
    budget({
      store,
      key: (state) => `user ${JSON.stringify(state.metadata['user'])}`,
      maxTokens: 1_500,
      perMs: 86_400_000,
    }),
  ]
  const agent = createAgent({ model: model(), settings, use })
  const status = async (): Promise<string> => (await agent.run('Go.', { metadata: { user: 'ann' } })).status
  assert.deepEqual([await status(), await status()], ['completed', 'stopped'])
  t.mock.timers.setTime(86_400_000 * 101)
  assert.equal(await status(), 'completed')
})

test('a run stops if its budget cannot be checked: the store fails, or the price of the model is unknown', async () => {
  const store = memoryStore()
  const broken = { ...store, update: () => Promise.reject(new Error('down')) }
  const stopped = await createAgent({
    model: model(),
    use: [budget({ store: broken, key: 'ann', maxTokens: 8_000 })],
  }).run('Go.')
  assert.notEqual(stopped.status, 'completed')
  const { cost: _cost, ...unpriced } = model()
  const unknown = await createAgent({ model: unpriced, use: [budget({ store, key: 'ann', maxCost: 1 })] }).run('Go.')
  assert.ok(unknown.status === 'stopped' && unknown.reason === 'costLimit')
})
