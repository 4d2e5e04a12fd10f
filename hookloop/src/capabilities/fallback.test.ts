import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LanguageModelV4, LanguageModelV4GenerateResult } from '@ai-sdk/provider'
import type { Agent } from '../core/agent/agent.ts'
import type { Use } from '../core/agent/capability.ts'
import { explanation } from '../core/explain/explanation.ts'
import type { Run } from '../core/agent/run.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { ModelSource } from '../core/state/inference.ts'
import { AgentError, errorCodes, type ErrorCode } from '../errors.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../models/scripted.ts'
import { fallback } from './fallback.ts'
import { retry } from './retry.ts'

const quick = { backoffMs: 0, maxBackoffMs: 0 }

function failing(code: ErrorCode = 'MODEL_OVERLOADED', message = 'busy'): ScriptedTurn {
  return { error: new AgentError(code, message) }
}

/** A model that always fails, with its name in the message. */
function broken(modelId: string, code?: ErrorCode) {
  return scriptedModel(() => failing(code, `${modelId} is busy`), { modelId })
}

function speaking(modelId: string, costUsd = 0) {
  return scriptedModel(() => `From ${modelId}.`, { modelId, usage: { costUsd } })
}

/** A model of the AI SDK that replies, or does what the test says. */
function sdkModel(modelId: string, answer: () => void = () => undefined): LanguageModelV4 {
  const doGenerate = async (): Promise<LanguageModelV4GenerateResult> => {
    answer()
    return {
      content: [{ type: 'text', text: `From ${modelId}.` }],
      finishReason: { unified: 'stop', raw: undefined },
      usage: {
        inputTokens: { total: 1_000, noCache: 1_000, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1_000, text: 1_000, reasoning: 0 },
      },
      warnings: [],
    }
  }
  const doStream = () => Promise.reject(new Error('not streamed'))
  return { specificationVersion: 'v4', provider: 'acme.chat', modelId, supportedUrls: {}, doGenerate, doStream }
}

function agentOn(model: ModelSource, ...use: readonly Use[]): Agent {
  return createAgent({ model, use })
}

function errorOf(run: Run): AgentError {
  assert.ok(run.status === 'failed', `the run is ${run.status}`)
  return run.error
}

function attemptsOf(run: Run): readonly string[] {
  return explanation(run).failedAttempts.map(({ message }) => message)
}

// ── which model is called, and when

test('models are called in order until one replies', async () => {
  const [a, b, c, d] = [broken('a'), broken('b'), speaking('c'), speaking('d')]
  const run = await agentOn(a, fallback([b, c, d])).run('go')
  assert.deepEqual(attemptsOf(run), ['attempt 1, scripted/a: a is busy', 'attempt 2, scripted/b: b is busy'])
  assert.deepEqual([run.text, d.requests.length], ['From c.', 0])
})

test('if all fail, the run fails with the last error, and the ledger has all of them', async () => {
  const run = await agentOn(broken('a'), fallback([broken('b'), broken('c', 'MODEL_REJECTED')])).run('go')
  assert.deepEqual([errorOf(run).code, errorOf(run).message], ['MODEL_REJECTED', 'c is busy'])
  assert.equal(attemptsOf(run).length, 3)
})

test('the next call of the run starts with the model of the agent again', async () => {
  const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
  const a = scriptedModel([failing(), 'Done.'], { modelId: 'a' })
  const b = scriptedModel([{ toolCalls: [{ name: 'work' }] }], { modelId: 'b' })
  const run = await agentOn(a, work, fallback([b])).run('go')
  assert.deepEqual([run.text, a.requests.length, b.requests.length], ['Done.', 2, 1])
})

test('another model gets the complete request: system prompt, messages, tools and settings', async () => {
  const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
  const [a, b] = [broken('a'), speaking('b')]
  await createAgent({ model: a, instructions: 'Be brief.', settings: { seed: 7 }, use: [work, fallback([b])] }).run(
    'go',
  )
  assert.equal(JSON.stringify(b.requests[0]), JSON.stringify(a.requests[0]))
})

const elsewhere: readonly ErrorCode[] = [
  'MODEL_RATE_LIMITED',
  'MODEL_OVERLOADED',
  'MODEL_TIMED_OUT',
  'MODEL_UNREACHABLE',
  'MODEL_REPLY_INVALID',
  'MODEL_CONTEXT_OVERFLOW',
  'MODEL_UNAUTHORIZED',
  'MODEL_REJECTED',
  'MODEL_FAILED',
]
test('another model is called after a failure, but not after other errors such as a content filter', async () => {
  for (const code of (Object.keys(errorCodes) as ErrorCode[]).filter((each) => !/^(REPLAY_|RECORDING_)/.test(each))) {
    const run = await agentOn(broken('a', code), fallback([speaking('b')])).run('go')
    assert.equal(run.status, elsewhere.includes(code) ? 'completed' : 'failed', code)
  }
})

test('with "on", another model is called for those codes only', async () => {
  const only = () => fallback([speaking('b')], { on: ['MODEL_CONTENT_FILTERED'] })
  const filtered = await agentOn(broken('a', 'MODEL_CONTENT_FILTERED'), only()).run('go')
  const overloaded = await agentOn(broken('a'), only()).run('go')
  assert.deepEqual([filtered.text, errorOf(overloaded).code], ['From b.', 'MODEL_OVERLOADED'])
})

test('with retry, each model is retried before the next is called, in any order of registration', async () => {
  for (const order of [1, -1]) {
    const [a, b, c] = [broken('a'), broken('b'), speaking('c')]
    const uses = [retry({ ...quick, maxRetries: 1 }), fallback([b, c])]
    const run = await agentOn(a, ...(order === 1 ? uses : uses.toReversed())).run('go')
    const asked = attemptsOf(run).map((message) => /scripted\/(.)/.exec(message)?.[1])
    assert.deepEqual([run.text, asked], ['From c.', ['a', 'a', 'b', 'b']])
  }
})

// ── guards and limits

test('guards judge the other model before it is called, and a stop ends the run', async () => {
  const [b, c] = [speaking('b'), speaking('c')]
  const seen: string[] = []
  const notB = guard(
    'beforeInference',
    (ctx) => {
      seen.push(ctx.request.model.modelId)
      return ctx.request.model.modelId === 'b' ? ctx.stop('Not with b.') : ctx
    },
    { name: 'notB' },
  )
  const run = await agentOn(broken('a'), notB, fallback([b, c])).run('go')
  assert.deepEqual([run.status, run.status === 'stopped' && run.by], ['stopped', 'notB'])
  assert.deepEqual([seen, b.requests.length, c.requests.length], [['a', 'b'], 0, 0])
})

test('the cost of the other model is its own price, also in later runs', async () => {
  const prices = { 'acme/sdk': { input: 100, output: 400 } }
  const agent = createAgent({ model: broken('a'), prices, use: [fallback([sdkModel('sdk')])] })
  const first = await agent.run('go')
  const second = await agent.run('and now', { from: first })
  assert.deepEqual([first.state.usage.costUsd, second.state.usage.costUsd], [0.5, 1])
})

test('after a cancellation no other model is called', async () => {
  const cancel = new AbortController()
  const a = scriptedModel(() => (setImmediate(() => cancel.abort()), { text: 'a', delayMs: 60_000 }))
  const b = speaking('b')
  const run = await agentOn(a, fallback([b])).run('go', { signal: cancel.signal })
  assert.deepEqual([run.status, b.requests.length], ['cancelled', 0])
})

// ── streams, ledger, replay
