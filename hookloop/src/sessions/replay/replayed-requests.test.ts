import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { hook, type Hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { replay } from './replay.ts'

test('a hook at beforeInference of a replay sees the requests that the model got', async () => {
  const store = memoryStore()
  const sent: unknown[] = []
  const model = scriptedModel(({ system, messages }) => {
    sent.push({ system, messages })
    return sent.length === 1 ? { toolCalls: [{ name: 'echo', args: { n: 1 } }] } : 'Done.'
  })
  const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
  const short: Hook = hook(
    'beforeInference',
    (ctx) => (ctx.state.stepCount === 1 ? ctx.withRequest({ system: 'Short.' }) : ctx),
    { name: 'short' },
  )
  const agent = createAgent({ model, instructions: 'Work.', store, use: [echo, short] })
  await agent.run('Go.', { session: 's' })
  const seen: unknown[] = []
  const see = hook('beforeInference', (ctx) => {
    const { system, messages } = ctx.request
    seen.push({ system, messages })
    return ctx
  })
  const { record } = await replay((await store.read('s'))!, { agent, hooks: [see] })
  assert.deepEqual(record, { status: 'complete' })
  assert.deepEqual(seen, sent)
})
