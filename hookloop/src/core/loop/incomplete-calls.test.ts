import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { LanguageModel } from '../state/inference.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { replayedRun } from '../../sessions/replay/replayed-run.fixture.ts'

const prompt = 'p'.repeat(40_000)
const DELTAS = 100
const passThrough = hook('aroundInference', (_ctx, next) => next())

type End = 'abort' | 'error' | 'rejected'

/** Streams some deltas of 40 characters, and ends without a reply. A token costs a millionth of a dollar. */
function brokenModel(end: End, streamed: () => void): LanguageModel {
  return {
    provider: 'test',
    modelId: 'broken',
    cost: ({ inputTokens, outputTokens }) => (inputTokens + outputTokens) / 1_000_000,
    infer: async (_request, { signal, onDelta }) => {
      if (end === 'rejected') throw new Error('bad request')
      for (let i = 0; i < DELTAS; i++) onDelta?.({ type: 'text', delta: 'd'.repeat(40) })
      streamed()
      if (end === 'error') throw new Error('the connection broke')
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  }
}

async function runOnce(
  end: End,
  use: readonly Use[],
  options: object = {},
  from?: Run<unknown>,
): Promise<Run<unknown>> {
  const controller = new AbortController()
  const model = brokenModel(end, () => setImmediate(() => controller.abort()))
  const agent = createAgent({ model, use })
  return agent.stream(prompt, { signal: controller.signal, ...(from && { from }), ...options }).run
}

for (const [how, use] of [
  ['', []],
  [' with hooks around it', [passThrough]],
] as const) {
  test(`a model call${how} that was cancelled before anything was streamed is billed for its prompt`, async () => {
    const run = await runOnce('abort', use, { deltas: false })
    const { inputTokens, outputTokens } = run.state.usage
    assert.deepEqual([run.status, inputTokens >= 10_000, outputTokens], ['cancelled', true, 0])
  })

  test(`a model call${how} that was cancelled is billed for its prompt and what was streamed, and says so`, async () => {
    const run = await runOnce('abort', use)
    const { inputTokens, outputTokens, costUsd } = run.state.usage
    assert.equal(run.status, 'cancelled')
    assert.ok(inputTokens >= 10_000 && inputTokens < 10_100, `${inputTokens} input tokens`)
    assert.equal(outputTokens, 1000)
    assert.ok(costUsd > 0.011)
    assert.deepEqual(
      run.warnings.map(({ code }) => code),
      ['USAGE_ESTIMATED'],
    )
  })

  test(`a model call${how} that failed while it streamed is billed, and one that was rejected is not`, async () => {
    assert.equal((await runOnce('error', use)).state.usage.outputTokens, 1000)
    const rejected = await runOnce('rejected', use)
    assert.deepEqual([rejected.state.usage.inputTokens, rejected.warnings], [0, []])
  })
}

test('cancelled calls add up, and maxCost stops the run after them', async () => {
  let run: Run<unknown> | undefined
  for (let i = 0; i < 3; i++) run = await runOnce('abort', [guards({ maxTokens: null })], {}, run)
  assert.ok(run!.state.usage.costUsd > 0.033, `${run!.state.usage.costUsd} USD`)
  const again = hook('onError', (ctx) => ctx.retry())
  const stopped = await runOnce('error', [guards({ maxTokens: null, maxCost: 0.02 }), again])
  assert.deepEqual([stopped.status === 'stopped' && stopped.final.reason], ['costLimit'])
})

test('the estimate of a cancelled call is the same in a replay', async () => {
  const controller = new AbortController()
  const model = brokenModel('abort', () => setImmediate(() => controller.abort()))
  const run = await replayedRun(createAgent({ model }), prompt, { signal: controller.signal })
  assert.ok(run.state.usage.inputTokens >= 10_000)
})

for (const [how, use] of [
  ['', []],
  [' with hooks around it', [passThrough]],
] as const) {
  test(`a model call${how} that exceeds timeoutMs fails with MODEL_TIMED_OUT, also if the model does not know the setting, and is billed`, async () => {
    const silent = { ...brokenModel('abort', () => undefined), infer: () => new Promise<never>(() => undefined) }
    const run = await createAgent({ model: silent, use, settings: { timeoutMs: 10 } }).run(prompt)
    assert.deepEqual(
      [run.status === 'failed' && run.error.code, run.warnings.map(({ code }) => code)],
      ['MODEL_TIMED_OUT', ['USAGE_ESTIMATED']],
    )
    assert.ok(run.state.usage.inputTokens >= 10_000)
  })
}

test('a model call of a hook that exceeds timeoutMs is billed', async () => {
  const silent = { ...brokenModel('abort', () => undefined), infer: () => new Promise<never>(() => undefined) }
  const asks = hook('beforeStep', async (ctx) => {
    await ctx.infer({ model: silent, prompt, settings: { timeoutMs: 10 } }).catch(() => undefined)
    return ctx
  })
  const run = await createAgent({ model: scriptedModel(['Done.']), use: [asks] }).run('Go.')
  assert.ok(run.state.usage.costUsd > 0.01)
})

test('calls that time out add up, and maxCost stops the run after them', async () => {
  const silent = { ...brokenModel('abort', () => undefined), infer: () => new Promise<never>(() => undefined) }
  const use = [guards({ maxTokens: null, maxCost: 0.02 }), hook('onError', (ctx) => ctx.retry())]
  const run = await createAgent({ model: silent, use, settings: { timeoutMs: 5 } }).run(prompt)
  assert.equal(run.status === 'stopped' && run.final.reason, 'costLimit')
})
