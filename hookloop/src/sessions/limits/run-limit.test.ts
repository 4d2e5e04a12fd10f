import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { explain } from '../../core/explain/explain.ts'
import { tool } from '../../core/agent/tool.ts'
import type { Use } from '../../core/agent/capability.ts'
import type { Agent } from '../../core/agent/agent.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { subagents } from '../../capabilities/subagents/index.ts'
import { createAgent } from '../../create-agent.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { clockedStore, gatedModel, unusable, userOf, valueOf } from './limits.fixture.ts'
import { runLimit, type RunLimitOptions } from './run-limit.ts'

type Limiting = Partial<RunLimitOptions> & { readonly store: SessionStore; readonly model: LanguageModel }

function limited({ model, ...options }: Limiting, ...use: readonly Use[]): Agent {
  return createAgent({ model, store: options.store, use: [runLimit({ maxRuns: 1, ...options }), ...use] })
}

async function held(store: SessionStore, name = 'runLimit all'): Promise<number> {
  return Object.keys((await valueOf(store, name)) as object).length
}

test('at most maxRuns runs with one key run at once, over all agents, and the next one starts when one ends', async () => {
  const [store, model] = [memoryStore(), gatedModel()]
  const agents = [0, 1].map(() => limited({ store, model, maxRuns: 2, key: userOf }))
  const run = (i: number, user: string): Promise<string> =>
    agents[i % 2]!.run(`${user}${i}`, { metadata: { user } }).then(({ status }) => status)
  const first = [run(0, 'ann'), run(1, 'ann')]
  await model.started(2)
  const waiting = run(2, 'ann')
  const other = run(3, 'bob')
  await model.started(3)
  assert.deepEqual(model.open.toSorted(), ['ann0', 'ann1', 'bob3'])
  model.answer('ann1')
  await model.started(4)
  assert.deepEqual(model.open.toSorted(), ['ann0', 'ann2', 'bob3'])
  for (const name of model.open) model.answer(name)
  assert.deepEqual(new Set(await Promise.all([...first, waiting, other])), new Set(['completed']))
  assert.deepEqual([await held(store, 'runLimit user ann'), await held(store, 'runLimit user bob')], [0, 0])
})

test('a run that finds no place in time stops, and explain says at which limit', async () => {
  const [store, model] = [memoryStore(), gatedModel()]
  const agent = limited({ store, model, maxWaitMs: 0 })
  const first = agent.run('first')
  await model.started(1)
  const second = await agent.run('second')
  assert.ok(second.status === 'stopped' && second.reason === 'stopRequested')
  assert.deepEqual([second.final.by, second.final.value], ['runLimit', { value: 1, limit: 1 }])
  assert.match(explain(second), /The limit "runLimit all" is reached: 1 of at most 1 runs\. None ended within 0 ms\./)
  model.answer('first')
  assert.equal((await first).status, 'completed')
})

test('a run that had to wait says so in its warnings, its events and explain, and a replay does without the store', async (t) => {
  const [store, model] = [memoryStore(), gatedModel()]
  const first = limited({ store, model }).run('first')
  await model.started(1)
  let now = 5_000
  t.mock.method(performance, 'now', () => now) // once: of two mocks of a method, the first one would stay
  const sessions = memoryStore()
  const second = createAgent({ model, store: sessions, use: [runLimit({ store, maxRuns: 1 })] }).stream('second', {
    session: 's',
  })
  const warned: string[] = []
  for await (const event of second) {
    if (event.type === 'started') {
      await new Promise((resolve) => setImmediate(resolve)) // until it has asked for a place
      now = 7_000
      model.answer('first')
    }
    if (event.type === 'inferenceStarted') void model.started(2).then(() => model.answer('second'))
    if (event.type === 'warning') warned.push(event.message)
  }
  const run = await second.run
  assert.equal((await first).status, 'completed')
  const message = 'Waited 2000 ms: The limit "runLimit all" is reached: 1 of at most 1 runs.'
  assert.deepEqual(warned, [message])
  assert.deepEqual(
    run.warnings.map(({ code, hook }) => [code, hook]),
    [['LIMIT_WAITED', 'runLimit']],
  )
  assert.ok(explain(run).includes(message))
  await strictReplay(limited({ store: unusable, model }), sessions, 's')
})

suite('a run that waits', () => {
  test('ends when it is cancelled, and takes no place', async () => {
    const [store, model] = [memoryStore(), gatedModel()]
    const agent = limited({ store, model })
    const first = agent.run('first')
    await model.started(1)
    const cancel = new AbortController()
    const second = agent.run('second', { signal: cancel.signal })
    cancel.abort()
    assert.equal((await second).status, 'cancelled')
    model.answer('first')
    assert.equal((await first).status, 'completed')
    assert.equal(await held(store), 0)
  })

  test('ends at its time limit', async () => {
    const [store, model] = [memoryStore(), gatedModel()]
    const first = limited({ store, model }).run('first')
    await model.started(1)
    const second = await limited({ store, model }, guards({ maxTimeMs: 1 })).run('second')
    assert.ok(second.status === 'stopped' && second.reason === 'timeLimit')
    model.answer('first')
    await first
    assert.equal(await held(store), 0)
  })

  test('asks the store rarely: of 100 that wait in a process, only the first does', async (t) => {
    const [store, model] = [clockedStore(), gatedModel()]
    const agent = limited({ store, model, maxWaitMs: Infinity })
    const first = agent.run('first')
    await model.started(1)
    const cancel = new AbortController()
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const waiting = Array.from({ length: 100 }, (_, i) => agent.run(`waiting ${i}`, { signal: cancel.signal }))
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    const before = store.updates
    for (let i = 0; i < 60; i++) {
      t.mock.timers.tick(1_000)
      for (let j = 0; j < 5; j++) await new Promise((resolve) => setImmediate(resolve))
    }
    assert.ok(store.updates - before <= 125, `${store.updates - before} in a minute`) // a pause is half a second at least
    assert.ok(store.updates - before >= 50)
    t.mock.timers.reset()
    cancel.abort()
    model.answer('first')
    await Promise.all([first, ...waiting])
    assert.equal(await held(store), 0)
  })
})

const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, execute: () => 'paid', ask: true })

test('a suspended run takes no place. A resume that finds none is rejected and changes nothing; later it counts once', async () => {
  const [store, model] = [memoryStore(), gatedModel()]
  const asking = limited(
    { store, model: scriptedModel([{ toolCalls: [{ name: 'pay' }] }, 'Paid.']), maxWaitMs: 0 },
    pay,
    approval('suspend'),
  )
  const suspended = await asking.run('Pay.', { session: 's' })
  assert.ok(suspended.status === 'suspended')
  assert.equal(await held(store), 0)
  const other = limited({ store, model }).run('other')
  await model.started(1)
  const answers = { [suspended.pending[0]!.id]: 'allow' } as const
  const saved = JSON.parse(JSON.stringify(suspended)) as typeof suspended
  await assert.rejects(asking.resume('s', { answers }), { code: 'SESSION_BUSY', message: /The limit "runLimit all"/ })
  await assert.rejects(asking.resume(saved, { answers }), { code: 'SESSION_BUSY' })
  assert.equal(await held(store), 1)
  model.answer('other')
  await other
  const resumed = await asking.resume('s', { answers })
  assert.deepEqual([resumed.status, resumed.text, await held(store)], ['completed', 'Paid.', 0])
})

test('a subagent is part of its run and takes no place of its own', async () => {
  const store = memoryStore()
  const helper = { description: 'Helps.', instructions: 'Help.', model: scriptedModel(['Helped.']) }
  const model = scriptedModel([
    { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'helper', prompt: 'Help me.' } }] },
    'Done.',
  ])
  const run = await limited({ store, model, maxWaitMs: 0 }, subagents({ agents: { helper } })).run('Go.')
  assert.deepEqual([run.status, run.text], ['completed', 'Done.'])
  assert.match(JSON.stringify(run.state.messages), /Helped/)
})

test('a run stops if the store of its limit fails', async () => {
  const run = await limited({ store: unusable, model: scriptedModel(['ok']) }).run('Go.')
  assert.ok(run.status === 'stopped')
  assert.match(run.final.message, /the store was used/)
})

test('a place is freed when its lease expires by the clock of the store, and a live run renews its own', async (t) => {
  const [store, model] = [clockedStore(), gatedModel()]
  t.mock.timers.enable({ apis: ['setInterval'] })
  const agent = limited({ store, model, maxWaitMs: 0, leaseMs: 30_000 })
  await store.update('runLimit all', () => ({ dead: { owner: 'x', until: store.now + 30_000 } }))
  assert.equal((await agent.run('full')).status, 'stopped')
  store.now += 30_000
  const live = agent.run('live')
  await model.started(1)
  for (let i = 0; i < 10; i++) {
    store.now += 10_000
    t.mock.timers.tick(10_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal((await agent.run('full')).status, 'stopped')
  model.answer('live')
  assert.equal((await live).status, 'completed')
})

test('a process that comes back after its lease has expired counts again, and frees no place of others', async (t) => {
  const [store, model] = [clockedStore(), gatedModel()]
  t.mock.timers.enable({ apis: ['setInterval'] })
  const agent = limited({ store, model, maxWaitMs: 0, leaseMs: 30_000 })
  const stalled = agent.run('stalled')
  await model.started(1)
  store.now += 30_000
  const other = agent.run('other')
  await model.started(2)
  assert.equal(await held(store), 1)
  t.mock.timers.tick(10_000)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(await held(store), 2)
  model.answer('stalled')
  await stalled
  assert.equal(await held(store), 1)
  model.answer('other')
  await other
})
