import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import type { Agent } from '../../core/agent/agent.ts'
import { explain } from '../../core/explain/explain.ts'
import { createAgent } from '../../create-agent.ts'
import { systemClock } from '../../core/effects/run-time.ts'
import { AgentError } from '../../errors.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { clockedStore, gatedModel, unusable, valueOf, type ClockedStore } from './limits.fixture.ts'
import { rateLimit, type RateLimitOptions } from './rate-limit.ts'

function limited(store: SessionStore, script: readonly ScriptedTurn[], options: Partial<RateLimitOptions> = {}): Agent {
  return createAgent({ model: scriptedModel(script), use: [rateLimit({ store, ...options })] })
}

function tooMany(retryAfterMs?: number): ScriptedTurn {
  const value = retryAfterMs === undefined ? {} : { retryAfterMs }
  return { error: new AgentError('MODEL_RATE_LIMITED', 'answered 429', { value }) }
}

/** Waits are over at once and move the clock of the store. Returns how long each was. */
function quickly(t: TestContext, store: ClockedStore, random = 0): number[] {
  const waits: number[] = []
  t.mock.method(Math, 'random', () => random)
  t.mock.method(systemClock, 'sleep', async (ms: number) => {
    waits.push(ms)
    store.now += ms
  })
  return waits
}

const rateOf = (store: SessionStore): Promise<unknown> => valueOf(store, 'rateLimit scripted/script')

suite('after an answer 429', () => {
  test('all agents wait as long as the provider asks for, and a success ends that', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    assert.equal((await limited(store, [tooMany(5_000)]).run('a')).status, 'failed')
    const second = await limited(store, ['ok']).run('b')
    assert.deepEqual([second.status, waits], ['completed', [5_000]])
    assert.deepEqual(
      second.warnings.map(({ code, hook, message }) => [code, hook, message]),
      [['LIMIT_WAITED', 'rateLimit', 'Waited 5000 ms: the limit "rateLimit scripted/script" was reached.']],
    )
    assert.match(explain(second), /Waited 5000 ms/)
    await limited(store, ['ok']).run('c')
    assert.deepEqual(waits, [5_000])
    assert.equal(((await rateOf(store)) as { failures: number }).failures, 0)
  })

  test('without a time to wait, they wait for a second, then twice as long each time, up to maxBackoffMs', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    for (let i = 0; i < 5; i++) await limited(store, [tooMany()], { maxBackoffMs: 5_000 }).run('a')
    assert.deepEqual(waits, [1_000, 2_000, 4_000, 5_000])
    store.now += 5_000
    await limited(store, ['ok']).run('b')
    await limited(store, [tooMany()]).run('c')
    await limited(store, ['ok']).run('d')
    assert.deepEqual(waits.slice(4), [1_000])
  })

  test('calls that were rejected together count once, and a call that was started before proves nothing', async (t) => {
    const [store, model] = [clockedStore(), gatedModel()]
    const waits = quickly(t, store)
    const agent = createAgent({ model, use: [rateLimit({ store })] })
    const runs = ['a', 'b', 'c'].map((name) => agent.run(name))
    await model.started(3)
    for (const name of ['a', 'b']) model.answer(name, new AgentError('MODEL_RATE_LIMITED', '429'))
    await Promise.all(runs.slice(0, 2))
    model.answer('c')
    await runs[2]
    assert.deepEqual(await valueOf(store, 'rateLimit test/gated'), {
      requestsAt: 0,
      tokensAt: 0,
      blockedUntil: store.now + 1_000,
      failures: 1,
    })
    const next = agent.run('d')
    await model.started(4)
    model.answer('d')
    await next
    assert.deepEqual(waits, [1_000])
  })

  test('those that waited do not call at once: each waits up to a quarter longer', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store, 0.5)
    await limited(store, [tooMany(8_000)]).run('a')
    await limited(store, ['ok']).run('b')
    assert.deepEqual(waits, [9_000])
  })

  test('a call that would wait longer than maxWaitMs fails at once, with the time to wait', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    await limited(store, [tooMany(90_000)]).run('a')
    const run = await limited(store, ['ok']).run('b')
    assert.ok(run.status === 'failed')
    assert.deepEqual(
      [run.error.code, run.error.value],
      ['MODEL_RATE_LIMITED', { provider: 'scripted', model: 'script', retryAfterMs: 90_000 }],
    )
    assert.match(explain(run), /the limit "rateLimit scripted\/script" is reached\. The call would wait for 90000 ms/)
    assert.deepEqual(waits, [])
  })

  test('no provider blocks all processes for longer than ten minutes', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    await limited(store, [tooMany(86_400_000)]).run('a')
    await limited(store, ['ok'], { maxWaitMs: Infinity }).run('b')
    assert.deepEqual(waits, [600_000])
  })

  test('a call that is blocked again while it waits does not wait longer than maxWaitMs in all, and does not use up the rate', async (t) => {
    const store = clockedStore()
    const options = { maxRequestsPerMinute: 1, maxWaitMs: 61_000 }
    await limited(store, ['ok'], options).run('a')
    const before = (await rateOf(store)) as { requestsAt: number }
    t.mock.method(systemClock, 'sleep', async (ms: number) => {
      store.now += ms
      const blockedUntil = store.now + 1_001
      await store.update('rateLimit scripted/script', (rate) => ({ ...(rate as object), blockedUntil }))
    })
    const run = await limited(store, ['ok'], options).run('b')
    assert.ok(run.status === 'failed')
    assert.match(run.error.message, /The call would wait for 1001 ms more, and may wait for 61000 ms/)
    assert.equal(((await rateOf(store)) as { requestsAt: number }).requestsAt, before.requestsAt)
  })
})

suite('a call that waits', () => {
  test('ends when the run is cancelled, and does not use up the rate', async (t) => {
    const store = clockedStore()
    const options = { maxRequestsPerMinute: 1 }
    await limited(store, ['ok'], options).run('a')
    const before = await rateOf(store)
    const cancel = new AbortController()
    const updatesBefore = store.updates
    t.mock.method(systemClock, 'sleep', async () => cancel.abort())
    assert.equal((await limited(store, ['ok'], options).run('b', { signal: cancel.signal })).status, 'cancelled')
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
    const { updates } = store
    assert.deepEqual(await rateOf(store), before)
    assert.equal(updates - updatesBefore, 2) // it is taken and returned
  })

  test('is not repeated by a replay, which does not use the store', async (t) => {
    const store = clockedStore()
    quickly(t, store)
    await limited(store, [tooMany(5_000)]).run('a')
    const sessions = memoryStore()
    const agent = createAgent({ model: scriptedModel(['ok']), store: sessions, use: [rateLimit({ store })] })
    assert.equal((await agent.run('b', { session: 's' })).status, 'completed')
    await strictReplay(limited(unusable, []), sessions, 's')
  })
})

suite('a rate', () => {
  test('of requests lets those of a minute through at once and spreads the others', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    const run = async (): Promise<unknown> => limited(store, ['ok'], { maxRequestsPerMinute: 6 }).run('go')
    for (let i = 0; i < 6; i++) await run()
    assert.deepEqual(waits, [])
    for (let i = 0; i < 3; i++) await run()
    assert.deepEqual(waits, [10_000, 10_000, 10_000])
    store.now += 3_600_000
    for (let i = 0; i < 7; i++) await run()
    assert.deepEqual(waits.slice(3), [10_000])
  })

  test('is not used up by a call that would wait too long', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    const options = { maxRequestsPerMinute: 1, maxWaitMs: 0 }
    await limited(store, ['ok'], options).run('a')
    const rate = await rateOf(store)
    const run = await limited(store, ['ok'], options).run('b')
    assert.deepEqual([run.status, await rateOf(store), waits], ['failed', rate, []])
  })

  test('is taken once by a call that waits, also for a millisecond, and no longer than needed after a block', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store, 0.5)
    const run = async (requestsAt: number): Promise<number> => {
      const rate = { requestsAt, tokensAt: 0, blockedUntil: store.now, failures: 0 }
      await store.update('rateLimit scripted/script', () => rate)
      await limited(store, ['ok'], { maxRequestsPerMinute: 6 }).run('go')
      return ((await rateOf(store)) as typeof rate).requestsAt - requestsAt
    }
    assert.deepEqual([await run(store.now - 9_999), await run(store.now)], [10_000, 10_000])
    assert.deepEqual(waits, [1, 10_000])
  })

  test('of tokens counts an estimate first and then what was used', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    const [model, options] = [gatedModel(), { maxTokensPerMinute: 6_000 }]
    const agent = createAgent({ model, use: [rateLimit({ store, ...options })] })
    for (let i = 1; i <= 3; i++) {
      const run = agent.run('go')
      await model.started(i)
      model.answer('go') // 1,000 tokens, estimated as more than 4,096
      await run
    }
    assert.deepEqual(waits, [1_040]) // after two calls 4,000 are left, and the third is estimated to need 4,104
  })

  test('of fewer tokens than one call is estimated to need lets one call through at a time', async (t) => {
    const store = clockedStore()
    const waits = quickly(t, store)
    const options = { maxTokensPerMinute: 10 }
    assert.equal((await limited(store, ['ok'], options).run('a')).status, 'completed')
    assert.deepEqual(waits, [])
  })
})
