import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { guards } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import type { LanguageModel, ModelReply } from '../state/inference.ts'
import { textMessage, textOf } from '../state/message.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { noUsage } from '../state/usage.ts'

const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })

function agentOf(script: Script, ...use: readonly Use[]) {
  const model = scriptedModel(script)
  return { model, agent: createAgent({ model, instructions: 'Be brief.', use: [work, ...use] }) }
}

/** An agent on a model that may return anything. */
function agentOn(reply: () => unknown, ...use: readonly Use[]): Agent {
  const model: LanguageModel = {
    provider: 'test',
    modelId: 'odd',
    infer: async () => (await reply()) as ModelReply,
  }
  return createAgent({ model, use: [work, ...use] })
}

// ── the input

test('onUserInput rewrites the input, and the model receives the rewritten input', async () => {
  const { model, agent } = agentOf(
    ['Done.'],
    hook('onUserInput', (ctx) => ctx.withInput('Something else.')),
  )
  const run = await agent.run('go')
  assert.deepEqual([...model.requests[0]!.messages], [textMessage('user', 'Something else.')])
  assert.equal(run.state.messages.length, 2)
})

test('onUserInput may change the state the run starts with', async () => {
  const prepare = hook('onUserInput', (ctx) => ctx.withState((state) => state.withSystemPrompt('Be long.')))
  const { model, agent } = agentOf(['Done.'], prepare)
  await agent.run('go')
  assert.equal(model.requests[0]!.system, 'Be long.')
})

const refusals: readonly (readonly [string, (cancel: () => void) => Use, string])[] = [
  [
    'blocked',
    () => guard('onUserInput', (ctx) => ctx.block('rude'), { name: 'polite' }),
    'stopped inputBlocked polite',
  ],
  [
    'dropped by a hook that throws',
    () => hook('onUserInput', () => Promise.reject(new Error('boom'))),
    'failed errorForbade error at onUserInput',
  ],
  ['cancelled', (cancel) => hook('onUserInput', (ctx) => (cancel(), ctx)), 'cancelled userRequested signal'],
]
for (const [how, refusal, ending] of refusals) {
  test(`an input that is ${how} is dropped: no model is called, and the conversation is unchanged`, async () => {
    const controller = new AbortController()
    const before = await agentOf(['Hello.']).agent.run('hi')
    const { model, agent } = agentOf(
      ['Done.'],
      refusal(() => controller.abort()),
    )
    const run = await agent.run('go', { from: before, signal: controller.signal })
    assert.ok(run.status !== 'suspended')
    assert.equal(`${run.status} ${run.final.reason} ${run.final.by}`, ending)
    assert.deepEqual([...run.state.messages], [...before.state.messages])
    assert.deepEqual([model.requests.length, run.state.executionCount], [0, 1])
  })
}

// ── the request

test('the model gets instructions, conversation and tools', async () => {
  const { model, agent } = agentOf(['Done.'])
  await agent.run('go')
  const { system, messages, tools } = model.requests[0]!
  assert.deepEqual(
    [system, [...messages], tools.map(({ name }) => name)],
    ['Be brief.', [textMessage('user', 'go')], ['work']],
  )
})

test('beforeInference changes the request, and only that', async () => {
  const alone = hook('beforeInference', (ctx) =>
    ctx.withRequest({
      system: 'Be kind.',
      tools: [],
      settings: { temperature: 0 },
      messages: [textMessage('user', 'hi')],
    }),
  )
  const { model, agent } = agentOf(['Done.'], alone)
  const run = await agent.run('go')
  const { system, messages, tools, settings } = model.requests[0]!
  assert.deepEqual(
    [system, [...messages], tools, settings],
    ['Be kind.', [textMessage('user', 'hi')], [], { temperature: 0 }],
  )
  assert.deepEqual([run.state.systemPrompt, textOf(run.state.messages.at(0)!.content)], ['Be brief.', 'go'])
})

test('a hook can send a request to another model', async () => {
  const other = scriptedModel(['From the other.'], { modelId: 'other' })
  const { model, agent } = agentOf(
    [],
    hook('beforeInference', (ctx) => ctx.withRequest({ model: other })),
  )
  assert.deepEqual([(await agent.run('go')).text, model.requests.length], ['From the other.', 0])
})

test('a hook that adds an unknown tool to the request fails the call', async () => {
  const { agent } = agentOf(
    ['Done.'],
    hook('beforeInference', (ctx) => ctx.withRequest({ tools: ['rm'] })),
  )
  const run = await agent.run('go')
  assert.ok(run.status === 'failed')
  assert.deepEqual([run.error.code, run.error.value], ['HOOK_FAILED', 'rm'])
})

test('guards judge a request that aroundInference changed', async () => {
  const leak = hook('aroundInference', (_ctx, next) => next({ system: 'The key is 1234.' }))
  const watch = guard('beforeInference', (ctx) => (/key/.test(ctx.request.system) ? ctx.stop('a secret') : ctx), {
    name: 'watch',
  })
  const { model, agent } = agentOf(['Done.'], leak, watch)
  const run = await agent.run('go')
  assert.deepEqual([run.status, run.status === 'stopped' && run.by, model.requests.length], ['stopped', 'watch', 0])
})

// ── the response

test('afterInference changes the response, and its usage stays', async () => {
  const redact = hook('afterInference', (ctx) => ctx.withResponse({ text: 'x' }))
  const run = await agentOf(['secret'], redact).agent.run('go')
  assert.deepEqual([run.text, run.state.usage.outputTokens], ['x', 5])
  assert.doesNotMatch(JSON.stringify(run), /secret/)
})

test('calls that a hook adds to a response are executed, and calls it removes are not', async () => {
  const add = hook('afterInference', (ctx) => {
    if (ctx.state.stepCount > 0) return ctx
    const call = { type: 'tool-call', toolCallId: 'mine', toolName: 'work', input: {} } as const
    return ctx.withResponse({ content: [call], finishReason: 'tool-calls' })
  })
  const remove = hook('afterInference', (ctx) =>
    ctx.withResponse({ content: [{ type: 'text', text: 'No.' }], finishReason: 'stop' }),
  )
  const added = await agentOf(['Done.', 'Done.'], add).agent.run('go')
  const removed = await agentOf([{ toolCalls: [{ name: 'work' }] }], remove).agent.run('go')
  assert.deepEqual([added.state.usage.toolCalls, removed.state.usage.toolCalls], [1, 0])
  assert.deepEqual([added.text, removed.text], ['Done.', 'No.'])
})

test('usage of a withheld response counts, and its calls never run', async () => {
  const withhold = guard('afterInference', (ctx) => ctx.block('secret'), { name: 'withhold' })
  const run = await agentOf([{ text: 'The key is 1234.', toolCalls: [{ name: 'work' }] }], withhold).agent.run('go')
  assert.deepEqual(run.state.usage, { ...noUsage, inputTokens: 10, outputTokens: 5, steps: 1 })
  assert.doesNotMatch(JSON.stringify(run), /1234/)
})

// ── invalid replies

const circular: { self?: unknown } = {}
circular.self = circular
const text = { type: 'text', text: 'hi' }

const nonsense: { readonly [what: string]: () => unknown } = {
  nothing: () => undefined,
  null: () => null,
  'a text': () => 'Done.',
  'a number': () => 17,
  'an empty object': () => ({}),
  'no content': () => ({ finishReason: 'stop' }),
  'content that is a text': () => ({ content: 'Done.', finishReason: 'stop' }),
  'a part that is null': () => ({ content: [null], finishReason: 'stop' }),
  'a part of an unknown type': () => ({ content: [{ type: 'video', url: 'x' }], finishReason: 'stop' }),
  'a text part without text': () => ({ content: [{ type: 'text' }], finishReason: 'stop' }),
  'a call without a name': () => ({
    content: [{ type: 'tool-call', toolCallId: 'a', input: {} }],
    finishReason: 'stop',
  }),
  'a call without input': () => ({
    content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'work' }],
    finishReason: 'stop',
  }),
  'a result of a call, which only tools give': () => ({
    content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'work', output: 'forged' }],
    finishReason: 'stop',
  }),
  'content that is circular': () => ({ content: [{ ...text, circular }], finishReason: 'stop' }),
  'content with a bigint': () => ({ content: [{ ...text, size: 1n }], finishReason: 'stop' }),
  'no finish reason': () => ({ content: [text] }),
  'an unknown finish reason': () => ({ content: [text], finishReason: 'bored' }),
  'a finish reason from the prototype': () => ({ content: [text], finishReason: 'constructor' }),
  'an error': () => Promise.reject(new Error('overloaded')),
  'a thrown nothing': () => {
    throw undefined
  },
  'a thrown circle': () => {
    throw circular
  },
}

suite('an invalid reply is a failed model call', () => {
  for (const [what, reply] of Object.entries(nonsense)) {
    test(`${what}: the run fails with one error step and a valid conversation`, async () => {
      const run = await agentOn(reply).run('go')
      assert.ok(run.status === 'failed')
      assert.deepEqual(
        run.state.execution!.steps.map(({ type, errors }) => [type, errors.length, errors[0]?.during]),
        [['error', 1, 'aroundInference']],
      )
      assert.deepEqual(
        run.state.messages.map(({ role }) => role),
        ['user'],
      )
      assert.ok(JSON.stringify(run).length > 0, 'it can be saved')
    })
  }
})

const usages: readonly unknown[] = [
  undefined,
  null,
  'lots',
  {},
  { inputTokens: NaN },
  { inputTokens: -5, outputTokens: -1, costUsd: -0.5 },
  { inputTokens: Infinity },
  { inputTokens: '12' },
]
for (const usage of usages) {
  test(`usage reported as ${JSON.stringify(usage) ?? 'nothing'} never reduces the usage of a run`, async () => {
    const run = await agentOn(() => ({ content: [text], finishReason: 'stop', usage })).run('go')
    const { inputTokens, outputTokens, costUsd } = run.state.usage
    assert.ok([inputTokens, outputTokens, costUsd].every((each) => Number.isFinite(each) && each >= 0))
    assert.doesNotThrow(() => JSON.stringify(run))
  })
}

test('a model that reports negative tokens cannot exceed maxTokens', async () => {
  let turns = 0
  const call = { type: 'tool-call', toolCallId: 'a', toolName: 'work', input: {} }
  const reply = (): unknown => ({
    content: [call],
    finishReason: 'tool-calls',
    usage: { inputTokens: turns++ % 2 === 0 ? 10 : -10, outputTokens: 0 },
  })
  const run = await agentOn(reply, guards({ maxTokens: 20, maxSteps: 50 })).run('go')
  assert.ok(run.status === 'stopped')
  assert.deepEqual([run.reason, run.state.usage.inputTokens >= 20], ['tokenLimit', true])
})

suite('a call whose usage is not known is billed by an estimate, so that limits apply', () => {
  const cost: LanguageModel['cost'] = ({ inputTokens, outputTokens }) => (inputTokens + outputTokens) / 1_000
  const prompt = 'word '.repeat(800)
  const call = { type: 'tool-call', toolCallId: '1', toolName: 'work', input: {} } as const
  const replies = (reply: object): LanguageModel => ({
    provider: 'own',
    modelId: 'model',
    cost,
    infer: async () => reply as never,
  })

  for (const [what, usage] of [
    ['no usage', undefined],
    ['usage without tokens', {}],
    ['only cached tokens', { cachedInputTokens: 5 }],
    ['only output tokens', { outputTokens: 5 }],
    ['tokens that are NaN', { inputTokens: NaN, outputTokens: NaN }],
    ['negative tokens', { inputTokens: -5, outputTokens: -5 }],
    ['tokens as text', { inputTokens: '5', outputTokens: '5' }],
    ['tokens and a cost that are not numbers', { inputTokens: Infinity, outputTokens: null, costUsd: NaN }],
  ] as const) {
    test(`of a model that reports ${what}, until maxCost ends the run`, async () => {
      const model = replies({ content: [call], finishReason: 'tool-calls', usage })
      const run = await createAgent({ model, use: [work, guards({ maxCost: 3 })] }).run(prompt)
      assert.deepEqual([run.status === 'stopped' && run.reason, run.state.stepCount], ['costLimit', 3])
      assert.deepEqual(
        [run.warnings.map(({ code }) => code), run.state.usage.inputTokens > 2_000],
        [['USAGE_ESTIMATED'], true],
      )
    })
  }

  test('of a model whose replies cannot be used, until maxCost ends the run', async () => {
    const model = replies({ content: [{ type: 'html' }], finishReason: 'stop', usage: { inputTokens: 1_000 } })
    const again = retry({ maxRetries: 20, backoffMs: 1, on: ['MODEL_REPLY_INVALID'] })
    const run = await createAgent({ model, use: [again, guards({ maxCost: 3 })] }).run(prompt)
    assert.deepEqual([run.status === 'stopped' && run.reason, run.state.usage.costUsd > 3], ['costLimit', true])
  })

  test('of a hook that calls a model whose reply cannot be used', async () => {
    const model = replies({ content: [{ type: 'html' }], finishReason: 'stop' })
    const asks = hook('beforeStep', async (ctx) => (await ctx.infer({ model, prompt }).catch(() => undefined), ctx))
    const run = await createAgent({ model: scriptedModel(['Hi.']), use: [asks] }).run('Go.')
    assert.deepEqual([run.status, run.state.usage.costUsd > 1], ['completed', true])
  })
})
