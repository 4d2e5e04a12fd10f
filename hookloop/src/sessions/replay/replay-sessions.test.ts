import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { tool } from '../../core/agent/tool.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { replay } from './replay.ts'
import { dyingStore } from '../session/dying-store.fixture.ts'
import { drive, eventfulAgent } from '../session/eventful-run.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { StoredSession } from '../stores/store.ts'

test('a run in which everything happens is replayed from its session, and nothing is done', async () => {
  const [store, done]: [ReturnType<typeof memoryStore>, string[]] = [memoryStore(), []]
  const agent = eventfulAgent(store, { note: (what) => done.push(what) })
  await drive(agent, store)
  const before = done.length
  const { record, differences, events } = await replay((await store.read('eventful'))!, { agent })
  assert.deepEqual([record, differences, done.length - before], [{ status: 'complete' }, [], 0])
  assert.ok(events > 20, `${events} events`)
})

test('a session whose process died and that was not resumed is judged up to its end', async () => {
  const inner = memoryStore()
  const store = dyingStore(inner, { at: 16, stored: true })
  const agent = eventfulAgent(store, nothing)
  await Promise.race([drive(agent, store), store.died])
  const { record, differences, events } = await replay((await inner.read('eventful'))!, { agent })
  assert.deepEqual([record.status, differences, events > 0], ['incomplete', [], true])
})

const nothing = { note: (): void => undefined }

const shell = tool({ name: 'shell', description: 'Runs.', input: { type: 'object' }, execute: () => 'ok' })
const forbidden = guard('beforeToolUse', (ctx) => ctx.block('No.'), { name: 'forbidden' })

/** A session of two runs, the first with a call in it. */
async function talk(): Promise<{ readonly agent: ReturnType<typeof createAgent>; readonly stored: StoredSession }> {
  const store = memoryStore()
  const agent = createAgent({
    model: scriptedModel([{ toolCalls: [{ name: 'shell' }] }, 'One.', 'Two.']),
    use: [shell],
    store,
  })
  await agent.run('First.', { session: 's', metadata: { who: 'ann' } })
  await agent.run('Second.', { session: 's' })
  return { agent, stored: (await store.read('s'))! }
}

test('the last run of a session is judged by default', async () => {
  const { agent, stored } = await talk()
  const how = { agent, hooks: [forbidden] }
  const reports = await Promise.all([
    replay(stored, how),
    replay(stored.lines, { ...how, run: 0 }),
    replay(stored, { ...how, run: -2 }),
  ])
  assert.deepEqual(
    reports.map(({ record, differences }) => [record.status, differences.length]),
    [
      ['complete', 0],
      ['complete', 1],
      ['complete', 1],
    ],
  )
  await assert.rejects(replay(stored, { ...how, run: 2 }), { code: 'AGENT_INVALID_OPTION' })
})

test('a run of a session starts with the state that the runs before it left', async () => {
  const { agent, stored } = await talk()
  const seen: unknown[] = []
  const nosy = hook(
    'beforeExecution',
    (ctx) => (seen.push([ctx.state.messages.length, ctx.state.metadata['who']]), ctx),
  )
  await replay(stored, { agent, hooks: [nosy], run: 0 })
  await replay(stored, { agent, hooks: [nosy] })
  assert.deepEqual(seen, [
    [1, 'ann'],
    [5, 'ann'],
  ])
})

test('a run that was cancelled is replayed as it was', async () => {
  const store = memoryStore()
  const cancel = new AbortController()
  const slow = tool({
    name: 'slow',
    description: 'Waits.',
    input: { type: 'object' },
    execute: async (_args, { signal }) => {
      cancel.abort()
      signal.throwIfAborted()
      return 'done'
    },
  })
  const agent = createAgent({
    model: scriptedModel([{ toolCalls: [{ name: 'slow' }, { name: 'slow' }] }, 'Done.']),
    use: [slow],
    store,
  })
  const run = await agent.run('Go.', { session: 's', signal: cancel.signal })
  const { record, differences } = await replay((await store.read('s'))!, { agent })
  assert.deepEqual([run.status, record, differences], ['cancelled', { status: 'complete' }, []])
})

test('a run that its reader has paused is replayed with what came after', async () => {
  const store = memoryStore()
  const agent = createAgent({
    model: scriptedModel([{ toolCalls: [{ name: 'shell' }] }, { toolCalls: [{ name: 'shell' }] }, 'Done.']),
    use: [shell],
    store,
  })
  const live = agent.iterate('Go.', { session: 's' })
  for await (const state of live) if (state.stepCount === 1) break
  await live.run
  await agent.resume('s')
  const { record, differences } = await replay((await store.read('s'))!, { agent, hooks: [forbidden] })
  assert.deepEqual([record.status, differences.map(({ step }) => step)], ['complete', [0, 1]])
})

test('a session of another agent is reported as diverged and judged up to there', async () => {
  const { agent, stored } = await talk()
  const other = agent.with(hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Another.' })))
  const { record, run } = await replay(stored, { agent: other, run: 0 })
  assert.equal(record.status, 'diverged')
  assert.match(record.message!, /the model call in step 1 has another input/)
  assert.equal(run.status, 'failed')
})
