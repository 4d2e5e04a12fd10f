import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import type { AiSdkModel } from '../core/state/inference.ts'
import { hook } from '../core/hooks/hook.ts'
import { scriptedModel } from './scripted.ts'
import { modelMaker } from './to-model.ts'

const sdk = (version: string): AiSdkModel => ({
  specificationVersion: version as 'v4',
  provider: 'acme.chat',
  modelId: 'large',
  doGenerate: () =>
    Promise.resolve({
      content: [{ type: 'text', text: version }],
      finishReason: 'stop',
      usage: { inputTokens: 1_000_000, outputTokens: 0 },
    }),
  doStream: () => Promise.reject(new Error('not asked for')),
})

test('AI SDK models of versions 2 to 4 are accepted', async () => {
  const texts = await Promise.all(['v2', 'v3', 'v4'].map((each) => createAgent({ model: sdk(each) }).run('Go.')))
  assert.deepEqual(
    texts.map(({ text }) => text),
    ['v2', 'v3', 'v4'],
  )
})

test('the cost of a call is reported if the price is known, and unknown otherwise', async () => {
  const prices = { 'acme/large': { input: 3, output: 1 } }
  const [known, unknown] = [modelMaker(prices)(sdk('v4')), modelMaker()(sdk('v4'))]
  assert.equal(unknown.cost, 'unknown')
  assert.equal(typeof known.cost, 'function')
  const run = await createAgent({ model: sdk('v4'), prices }).run('Go.')
  assert.equal(run.state.usage.costUsd, 3)
})

test('a hook may choose another model in any form', async () => {
  const model = scriptedModel(['never'])
  const use = [hook('beforeInference', (ctx) => ctx.withRequest({ model: sdk('v3') }))]
  assert.equal((await createAgent({ model, use }).run('Go.')).text, 'v3')
})
