import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { JsonObject } from '../../state/json.ts'
import { exportSession } from '../session/export-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { readRuns } from './read-runs.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, ask: true, execute: () => 'paid' })

async function requests(store: SessionStore, id = 's'): Promise<readonly (JsonObject | undefined)[]> {
  return (await readRuns(store, id))
    .flatMap((run) => run.calls)
    .flatMap(({ kind, request }) => (kind === 'inference' ? [request] : []))
}

test('with recordRequests, readRuns returns each model request as a whole', async () => {
  const store = memoryStore()
  const seen: JsonObject[] = []
  const model = scriptedModel(({ messages, system, tools }) => {
    seen.push(JSON.parse(JSON.stringify({ system, tools, messages })) as JsonObject)
    return seen.length < 4 ? { toolCalls: [{ name: 'echo', args: { n: seen.length } }] } : 'Done.'
  })
  // The second request is another one in every part that a hook can change.
  const second = hook(
    'beforeInference',
    (ctx) =>
      ctx.state.stepCount === 1
        ? ctx.withRequest({
            system: 'Short.',
            tools: [],
            settings: { temperature: 1 },
            messages: ctx.request.messages.slice(0, 1),
          })
        : ctx,
    { name: 'second' },
  )
  const agent = createAgent({ model, instructions: 'Work.', store, use: [echo, second] })
  await agent.run('Go.', { session: 's', recordRequests: true })
  const stored = await requests(store)
  assert.equal(stored.length, 4)
  assert.deepEqual(
    stored.map((request) => {
      const { model: name, settings: _settings, ...rest } = request!
      assert.equal(name, 'scripted/script')
      return rest
    }),
    seen,
  )
  assert.deepEqual(
    stored.map((request) => request!['settings']),
    [undefined, { temperature: 1 }, undefined, undefined],
  )
})

test('recordRequests stays in force when a run is resumed, and ends with the run', async () => {
  const store = memoryStore()
  const model = scriptedModel([{ toolCalls: [{ name: 'pay' }] }, 'Done.', 'Again.'])
  const agent = createAgent({ model, store, use: [pay, approval('suspend')] })
  const run = await agent.run('Go.', { session: 's', recordRequests: true })
  assert.ok(run.status === 'suspended')
  await agent.resume('s', { answers: { [run.pending[0]!.id]: 'allow' } })
  await agent.run('More.', { session: 's' })
  assert.deepEqual(
    (await requests(store)).map((each) => each !== undefined),
    [true, true, false],
  )
})

test('recorded requests grow with what is new in them, not with the conversation', async () => {
  const sizeOf = async (steps: number): Promise<number> => {
    const store = memoryStore()
    let step = 0
    const model = scriptedModel(() =>
      ++step < steps ? { toolCalls: [{ name: 'echo', args: { text: 'x'.repeat(200) } }] } : 'Done.',
    )
    const agent = createAgent({ model, store, use: [echo, guards({ maxSteps: null })] })
    await agent.run('Go.', { session: 's', recordRequests: true })
    assert.equal((await requests(store)).length, steps)
    const { lines } = (await store.read('s'))!
    return lines.filter((line) => !line.includes('"t":"snapshot"')).join('\n').length
  }
  const [few, many] = [await sizeOf(20), await sizeOf(200)]
  assert.ok(many < 13 * few, `${many} characters for 200 steps, ${few} for 20`)
})

test('recorded requests are whole after a run was resumed from a snapshot', async () => {
  const store = memoryStore()
  const seen: number[] = []
  const model = scriptedModel(({ messages }) => {
    seen.push(messages.length)
    if (seen.length === 300) return 'Done.'
    return { toolCalls: [{ name: seen.length === 250 ? 'pay' : 'echo', args: { text: 'x'.repeat(300) } }] }
  })
  const use = [echo, pay, approval('suspend'), guards({ maxSteps: null })]
  const run = await createAgent({ model, store, use }).run('Go.', { session: 's', recordRequests: true })
  assert.ok(run.status === 'suspended')
  assert.ok('snapshot' in (await store.read('s'))!.head)
  const other = { ...store } // as in another process, which has no session in memory
  await createAgent({ model, store: other, use }).resume('s', { answers: { [run.pending[0]!.id]: 'allow' } })
  const stored = await requests(store)
  assert.deepEqual(
    stored.map((request) => (request!['messages'] as readonly unknown[]).length),
    seen,
  )
  assert.ok(stored.every((request) => Array.isArray(request!['tools'])))
})

test('an export leaves recorded requests out', async () => {
  const store = memoryStore()
  await createAgent({ model: scriptedModel(['Done.']), instructions: 'A long prompt.', store }).run('Go.', {
    session: 's',
    recordRequests: true,
  })
  assert.ok((await store.read('s'))!.lines.join('\n').includes('"request":{'))
  assert.ok(!(await exportSession(store, 's')).includes('"request":{'))
})
