import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../core/explain/explain.ts'
import { fallback } from '../../capabilities/fallback.ts'
import { subagents } from '../../capabilities/subagents/index.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { callLimit } from './call-limit.ts'
import { gatedModel, unusable, valueOf } from './limits.fixture.ts'

test('at most maxCalls calls of a model run at once, over all agents; other models are not limited', async () => {
  const store = memoryStore()
  const [model, other] = [gatedModel(), gatedModel('other')]
  const agents = [model, model, other].map((each) =>
    createAgent({ model: each, use: [callLimit({ store, maxCalls: 1 })] }),
  )
  const runs = agents.map((agent, i) => agent.run(`run ${i}`))
  await Promise.all([model.started(1), other.started(1)])
  assert.equal(model.open.length, 1)
  model.answer(model.open[0]!)
  await model.started(2)
  model.answer(model.open[0]!)
  other.answer('run 2')
  assert.deepEqual(new Set((await Promise.all(runs)).map(({ status }) => status)), new Set(['completed']))
  assert.deepEqual(await valueOf(store, 'callLimit test/gated'), {})
})

test('a call that finds no place in time fails with MODEL_RATE_LIMITED, and fallback calls another model', async () => {
  const [store, model] = [memoryStore(), gatedModel()]
  const limit = callLimit({ store, maxCalls: 1, maxWaitMs: 0 })
  const first = createAgent({ model, use: [limit] }).run('first')
  await model.started(1)
  const rejected = await createAgent({ model, use: [limit] }).run('second')
  assert.ok(rejected.status === 'failed' && rejected.error.code === 'MODEL_RATE_LIMITED')
  assert.match(
    explain(rejected),
    /test\/gated was not called: the limit "callLimit test\/gated" is reached: 1 of at most 1/,
  )
  const backup = await createAgent({ model, use: [limit, fallback([scriptedModel(['From the other.'])])] }).run('third')
  assert.equal(backup.text, 'From the other.')
  model.answer('first')
  assert.equal((await first).status, 'completed')
})

test('the calls of subagents and of hooks count, and the wait of each is in the run; a replay does not use the store', async (t) => {
  const [store, model] = [memoryStore(), gatedModel()]
  let time = 0
  t.mock.method(performance, 'now', () => time)
  const asks = hook(
    'beforeStep',
    async (ctx) => {
      if (ctx.state.stepCount === 0) await ctx.infer({ prompt: 'What is this about?' })
      return ctx
    },
    { name: 'asks' },
  )
  const use = (limited = store) => [
    callLimit({ store: limited, maxCalls: 1 }),
    subagents({ agents: { helper: { description: 'Helps.', instructions: 'Help.' } } }),
  ]
  const blocking = createAgent({ model, use: [callLimit({ store, maxCalls: 1 })] })
  const sessions = memoryStore()
  const main = createAgent({ model, store: sessions, use: [...use(), asks] })
  // Each call of the run waits for one of another agent that is started before it.
  let count = 0
  const block = async (): Promise<() => void> => {
    const name = `block ${count}`
    const run = blocking.run(name)
    await model.started(++count)
    return () => {
      time += 1_000
      model.answer(name)
      void run
    }
  }
  const pass = async (end: () => void, next: string, reply = {}): Promise<void> => {
    for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
    end()
    await model.started(++count)
    assert.deepEqual(model.open, [next])
    model.answer(next, reply)
  }
  const first = await block()
  const running = main.run('Go.', { session: 's' })
  await pass(first, 'What is this about?')
  await model.started(++count)
  model.answer('Go.', {
    content: [
      {
        type: 'tool-call',
        toolCallId: 'c',
        toolName: 'spawn_subagent',
        input: { subagent: 'helper', prompt: 'Help.' },
      },
    ],
    finishReason: 'tool-calls',
  })
  await model.started(++count)
  assert.deepEqual(model.open, ['Help.'])
  assert.equal(Object.keys((await valueOf(store, 'callLimit test/gated')) as object).length, 1)
  model.answer('Help.')
  await model.started(++count)
  model.answer('Go.')
  const run = await running
  assert.equal(run.status, 'completed')
  assert.deepEqual(
    run.warnings.map(({ code, hook: by, message }) => [code, by, message]),
    [
      [
        'LIMIT_WAITED',
        'callLimit',
        'Waited 1000 ms: the limit "callLimit test/gated" is reached: 1 of at most 1 calls.',
      ],
    ],
  )
  await strictReplay(createAgent({ model, use: [...use(unusable), asks] }), sessions, 's')
})

test('a call that is cancelled frees its place', async () => {
  const [store, model] = [memoryStore(), gatedModel()]
  const agent = createAgent({ model, use: [callLimit({ store, maxCalls: 1, maxWaitMs: 0 })] })
  const cancel = new AbortController()
  const first = agent.run('first', { signal: cancel.signal })
  await model.started(1)
  cancel.abort()
  assert.equal((await first).status, 'cancelled')
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(await valueOf(store, 'callLimit test/gated'), {})
})
