import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import type { AiSdkModel, ModelSource } from '../state/inference.ts'
import { hook } from '../hooks/hook.ts'
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

test('a model of our own port is used as it is', () => {
  const model = scriptedModel(['Hi.'])
  assert.equal(modelMaker()(model), model)
})

test('models of the AI SDK are taken from version 2 on', async () => {
  const texts = await Promise.all(['v2', 'v3', 'v4'].map((each) => createAgent({ model: sdk(each) }).run('Go.')))
  assert.deepEqual(
    texts.map(({ text }) => text),
    ['v2', 'v3', 'v4'],
  )
})

test('the same source is the same model each time', () => {
  const [toModel, source] = [modelMaker(), sdk('v4')]
  assert.equal(toModel(source), toModel(source))
  assert.equal(toModel('openai/gpt-5'), toModel('openai/gpt-5'))
})

test('what is no model is refused, and what one is is said', () => {
  const wrong: readonly unknown[] = [
    undefined,
    null,
    7,
    {},
    () => undefined,
    [],
    { infer: 1 },
    sdk('v1'),
    sdk('toString'),
  ]
  for (const source of wrong) {
    assert.throws(() => modelMaker()(source as ModelSource), {
      code: 'MODEL_INVALID',
      message: /a language model of the AI SDK/,
    })
  }
})

test('what a call costs is said where the price is known, and that it is not where it is not', async () => {
  const prices = { 'acme/large': { input: 3, output: 1 } }
  const [known, unknown] = [modelMaker(prices)(sdk('v4')), modelMaker()(sdk('v4'))]
  assert.equal(unknown.cost, 'unknown')
  assert.equal(typeof known.cost, 'function')
  const run = await createAgent({ model: sdk('v4'), prices }).run('Go.')
  assert.equal(run.state.usage.costUsd, 3)
})

test('a hook may choose another model, in any form it comes in', async () => {
  const model = scriptedModel(['never'])
  const use = [hook('beforeInference', (ctx) => ctx.withRequest({ model: sdk('v3') }))]
  assert.equal((await createAgent({ model, use }).run('Go.')).text, 'v3')
})
