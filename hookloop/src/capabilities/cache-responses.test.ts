import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../core/agent/agent.ts'
import type { Use } from '../core/agent/capability.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { LanguageModel, RequestChange } from '../core/state/inference.ts'
import type { Json } from '../values/json.ts'
import { textMessage } from '../core/state/message.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { scriptedModel, type ScriptedModel } from '../models/scripted.ts'
import { cacheResponses, type ResponseStore } from './cache-responses.ts'

const paid = { costUsd: 0.5 }

/** A model that replies with the number of its call. */
function counting(modelId = 'script'): ScriptedModel {
  let asked = 0
  return scriptedModel(() => `Answer ${++asked}.`, { modelId, usage: paid })
}

function agentOn(model: LanguageModel, ...use: readonly Use[]): Agent {
  return createAgent({ model, use })
}

/** A store with readable entries. */
function openStore(): ResponseStore & { readonly stored: Map<string, Json> } {
  const stored = new Map<string, Json>()
  return { stored, get: (key) => stored.get(key), set: (key, value) => void stored.set(key, value) }
}

const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
const play = tool({ name: 'play', description: 'Plays.', input: { type: 'object' }, execute: () => 'played' })

// ── hits

test('an equal request gets the stored response, without a model call and at no cost', async () => {
  const model = counting()
  const agent = agentOn(model, cacheResponses())
  const [first, second] = [await agent.run('go'), await agent.run('go')]
  assert.deepEqual([first.text, second.text, model.requests.length], ['Answer 1.', 'Answer 1.', 1])
  assert.deepEqual([first.state.usage.costUsd, second.state.usage.costUsd], [0.5, 0])
  const { inputTokens, outputTokens, steps } = second.state.usage
  assert.deepEqual([inputTokens, outputTokens, steps], [0, 0, 1])
})

test('a run with tools is answered from the cache, and its tools run again', async () => {
  let ran = 0
  const counted = tool({
    name: 'count',
    description: 'Counts.',
    input: { type: 'object' },
    execute: () => `${++ran > 0}`,
  })
  const model = scriptedModel([{ reasoning: 'Hm.', toolCalls: [{ name: 'count', args: { n: 1 } }] }, 'Done.'])
  const agent = agentOn(model, counted, cacheResponses())
  const [first, second] = [await agent.run('go'), await agent.run('go')]
  assert.deepEqual(second.state.messages, first.state.messages)
  assert.deepEqual([second.text, ran, model.requests.length], ['Done.', 2, 2])
})

test('a withheld response is stored as the model sent it, and withheld each time', async () => {
  const model = counting()
  const agent = agentOn(
    model,
    guard('afterInference', (ctx) => ctx.block('No.')),
    cacheResponses(),
  )
  const texts = [await agent.run('go'), await agent.run('go')].map((run) => run.text)
  assert.deepEqual([texts[0] === texts[1], texts[0]!.startsWith('[withheld'), model.requests.length], [true, true, 1])
})

// ── misses

const differences: { readonly [what: string]: RequestChange } = {
  settings: { settings: { temperature: 0.1 } },
  'the conversation': { messages: [textMessage('user', 'go!')] },
  'a longer conversation': { messages: [textMessage('user', 'go'), textMessage('user', 'on')] },
  instructions: { system: 'Be long.' },
  tools: { tools: ['work'] },
  'the order of tools': { tools: ['play', 'work'] },
  'the tool choice': { toolChoice: 'none' },
  'the response format': { responseFormat: { type: 'json' } },
  'the model': { model: counting('other') },
}
for (const [what, change] of Object.entries(differences)) {
  test(`a request that differs in ${what} is not answered from the cache`, async () => {
    const store = openStore()
    const seen = hook('beforeInference', (ctx) => ctx.withRequest(change))
    await agentOn(counting(), work, play, cacheResponses({ store })).run('go')
    const run = await agentOn(counting(), work, play, seen, cacheResponses({ store })).run('go')
    assert.deepEqual([store.stored.size, run.state.usage.costUsd], [2, 0.5])
  })
}

test('only complete responses are stored', async () => {
  for (const finishReason of ['stop', 'tool-calls', 'length', 'content-filter', 'error', 'other'] as const) {
    const store = openStore()
    await agentOn(scriptedModel([{ text: 'Half', finishReason }]), cacheResponses({ store })).run('go')
    assert.equal(store.stored.size, /^(stop|tool-calls)$/.test(finishReason) ? 1 : 0, finishReason)
  }
})

test('a failed call is not stored', async () => {
  const store = openStore()
  const turns = [{ error: 'boom' }, 'Done.']
  const agent = agentOn(
    scriptedModel(() => turns.shift()!),
    cacheResponses({ store }),
  )
  const statuses = [await agent.run('go'), await agent.run('go')].map((run) => run.status)
  assert.deepEqual([statuses, store.stored.size], [['failed', 'completed'], 1])
})

test('a response expires after ttlMs', async ({ mock }) => {
  mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const agent = agentOn(counting(), cacheResponses({ ttlMs: 500 }))
  const texts: string[] = []
  for (const wait of [0, 499, 1]) {
    mock.timers.tick(wait)
    texts.push((await agent.run('go')).text)
  }
  assert.deepEqual(texts, ['Answer 1.', 'Answer 1.', 'Answer 2.'])
})

// ── stores

const bad: { readonly [how: string]: Partial<ResponseStore> } = {
  'cannot be read': { get: () => assert.fail('read') },
  'cannot be read later': { get: () => Promise.reject(new Error('read')) },
  'cannot be written': { set: () => assert.fail('written') },
  'cannot be written later': { set: () => Promise.reject(new Error('written')) },
  'gives something else': { get: () => 'nonsense' },
  'gives null': { get: () => null },
  'gives an entry without an answer': { get: () => ({ until: Number.MAX_SAFE_INTEGER }) },
  'gives an answer without content': { get: () => ({ until: Number.MAX_SAFE_INTEGER, answer: {} }) },
  'gives an answer that cannot be read': {
    get: () => ({ until: Number.MAX_SAFE_INTEGER, answer: { content: [{ type: 'noise' }], finishReason: 'stop' } }),
  },
  'gives an answer whose content is a text': {
    get: () => ({ until: Number.MAX_SAFE_INTEGER, answer: { content: 'Hi.', finishReason: 'stop' } }),
  },
}
for (const [how, part] of Object.entries(bad)) {
  test(`with a store that ${how}, the model is called and the run continues`, async () => {
    const run = await agentOn(counting(), cacheResponses({ store: { ...openStore(), ...part } })).run('go')
    assert.deepEqual([run.status, run.text], ['completed', 'Answer 1.'])
  })
}
