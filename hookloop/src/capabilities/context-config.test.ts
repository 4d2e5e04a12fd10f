import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { hook } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { contextConfig } from './context-config.ts'

const format = { type: 'object', properties: { answer: { type: 'string' } } }

test('the model gets the system prompt and the response format', async () => {
  const model = scriptedModel(['{}'])
  const use = [contextConfig({ systemPrompt: 'Be brief.', responseFormat: format })]
  await createAgent({ model, instructions: 'Be long.', use }).run('go')
  const [{ system, responseFormat }] = model.requests as [(typeof model.requests)[0]]
  assert.deepEqual({ system, responseFormat }, { system: 'Be brief.', responseFormat: format })
})

test('an empty value leaves the current one', async () => {
  const model = scriptedModel(['one', 'two'])
  const first = await createAgent({
    model,
    use: [contextConfig({ systemPrompt: 'Kept.', responseFormat: format })],
  }).run('go')
  const empty = createAgent({ model, use: [contextConfig({ systemPrompt: '', responseFormat: {} })] })
  await empty.run('go on', { from: first })
  const { system, responseFormat } = model.requests[1]!
  assert.deepEqual({ system, responseFormat }, { system: 'Kept.', responseFormat: format })
})

test('the configuration is applied before hooks of the application run', async () => {
  const seen: string[] = []
  const look = hook('beforeExecution', (ctx) => {
    seen.push(ctx.state.systemPrompt)
    return ctx
  })
  await createAgent({ model: scriptedModel(['x']), use: [look, contextConfig({ systemPrompt: 'Set.' })] }).run('go')
  assert.deepEqual(seen, ['Set.'])
})
