import assert from 'node:assert/strict'
import { test } from 'node:test'
import { estimateTokens } from '../../core/model/estimate-usage.ts'
import { createAgent } from '../../create-agent.ts'
import type { JsonObject } from '../../values/json.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import { hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { budget } from './budget.ts'

test('a budget counts the prompt of a call that timed out, and frees what was reserved', async () => {
  const store = memoryStore()
  const silent = { provider: 'test', modelId: 'silent', infer: () => new Promise<never>(() => undefined) }
  const use = [budget({ store, key: 'ann', maxTokens: 100_000 })]
  const run = await createAgent({ model: silent, use, settings: { timeoutMs: 5 } }).run('x'.repeat(4_000))
  assert.equal(run.status === 'failed' && run.error.code, 'MODEL_TIMED_OUT')
  const { tokens, reserved } = (await store.update('budget ann', (value) => value ?? {})) as JsonObject
  assert.equal(tokens, estimateTokens([{ type: 'text', text: 'x'.repeat(4_000) }]))
  assert.deepEqual(reserved, {})
})

const unusable: LanguageModel = {
  provider: 'test',
  modelId: 'unusable',
  infer: async () => ({ content: [{ type: 'html' }], finishReason: 'stop' }) as never,
}
const breaking = scriptedModel([{ chunks: ['One ', 'two '], error: 'The connection was lost.' }])
const prompt = 'x'.repeat(4_000)

for (const [what, model] of [
  ['whose answer cannot be used', unusable],
  ['whose answer breaks off', breaking],
] as const) {
  test(`a budget counts the prompt of a call ${what}, as the run does`, async () => {
    const store = memoryStore()
    const use = [budget({ store, key: 'ann', maxTokens: 100_000 })]
    const stream = createAgent({ model, use }).stream(prompt)
    const types: string[] = []
    for await (const { type } of stream) types.push(type)
    assert.ok(types.includes('inferenceStarted'))
    const run = await stream.run
    const { tokens, reserved } = (await store.update('budget ann', (value) => value ?? {})) as JsonObject
    assert.ok(run.state.usage.inputTokens >= 1_000)
    assert.deepEqual([run.status, tokens, reserved], ['failed', run.state.usage.inputTokens, {}])
  })
}

test('a budget counts the prompt of a call that a hook makes and whose answer cannot be used', async () => {
  const store = memoryStore()
  const asks = hook('beforeStep', async (ctx) => {
    await ctx.infer({ model: unusable, prompt }).catch(() => undefined)
    return ctx
  })
  const use = [asks, budget({ store, key: 'ann', maxTokens: 100_000 })]
  const run = await createAgent({ model: scriptedModel(['Hi.']), use }).run('Go.')
  const { tokens } = (await store.update('budget ann', (value) => value ?? {})) as JsonObject
  const { inputTokens, outputTokens } = run.state.usage
  assert.ok(inputTokens >= 1_000)
  assert.deepEqual([run.status, tokens], ['completed', inputTokens + outputTokens])
})
