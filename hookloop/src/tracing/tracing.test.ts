import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { SpanKind } from '@opentelemetry/api'
import type { AgentOptions } from '../create-agent.ts'
import type { Use } from '../core/agent/capability.ts'
import { tool } from '../core/agent/tool.ts'
import { errorPolicy } from '../capabilities/error-policy.ts'
import { createAgent } from '../create-agent.ts'
import type { LanguageModel } from '../core/state/inference.ts'
import { guard, hook, observe } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { inMemory, timesOf, treeOf } from './in-memory.fixture.ts'
import { type TracingOptions } from './tracing.ts'

const input = { type: 'object' } as const
const read = tool({ name: 'read', description: 'Reads.', input, execute: () => 'text' })
const erase = tool({ name: 'erase', description: 'Erases.', input, execute: () => 'gone' })
const noErase = guard('beforeToolUse', (ctx) => ctx.block('Nothing is erased.'), { name: 'no-erase', tool: 'erase' })

async function trace(
  agent: Omit<AgentOptions, 'use'>,
  { use = [], ...options }: TracingOptions & { readonly use?: readonly Use[] } = {},
) {
  const otel = inMemory(options)
  const run = await createAgent({ ...agent, use: [...use, otel.tracing] }).run('Go.')
  return { ...otel, run, tree: treeOf(otel.spans()) }
}

test('a run is a tree of the execution, its steps, and in them model calls, tools and deciding hooks', async () => {
  const model = scriptedModel([{ toolCalls: [{ name: 'read' }, { name: 'erase' }] }, 'Done.'], { modelId: 'm-1' })
  const { tree, span, spans } = await trace({ model }, { use: [read, erase, noErase], agentName: 'tidy' })
  assert.deepEqual(tree, [
    'invoke_agent tidy',
    '  step 1',
    '    chat m-1',
    '    execute_tool read',
    '    hook no-erase',
    '    execute_tool erase !',
    '  step 2',
    '    chat m-1',
    '    hook completion',
  ])
  const kinds = spans().map(({ name, attributes }) => [name.split(' ')[0], attributes['openinference.span.kind']])
  assert.deepEqual(Object.fromEntries(kinds), {
    invoke_agent: 'AGENT',
    step: 'CHAIN',
    chat: 'LLM',
    execute_tool: 'TOOL',
    hook: 'GUARDRAIL',
  })
  assert.deepEqual(span('hook no-erase').attributes, {
    'openinference.span.kind': 'GUARDRAIL',
    'hookloop.hook.name': 'no-erase',
    'hookloop.hook.mode': 'guard',
    'hookloop.hook.trigger': 'beforeToolUse',
    'hookloop.hook.decision': 'block',
    'gen_ai.tool.call.id': 'call-1-2',
  })
})

test('the span of a model call has the model, the settings, the finish reason and the usage', async () => {
  const model: LanguageModel = {
    provider: 'anthropic.messages',
    modelId: 'claude',
    async infer() {
      const usage = {
        inputTokens: 100,
        outputTokens: 20,
        cachedInputTokens: 60,
        cacheWriteTokens: 30,
        reasoningTokens: 7,
      }
      const content = [{ type: 'text', text: 'Hi.' }] as const
      return { content, finishReason: 'length', usage: { ...usage, costUsd: 0.25 }, modelId: 'claude-20990101' }
    },
  }
  const settings = { temperature: 0.5, topP: 0.9, topK: 4, maxOutputTokens: 99, seed: 1, stopSequences: ['END'] }
  const { span } = await trace({ model, settings })
  const { attributes, kind, instrumentationScope: _scope } = span('chat claude')
  const { 'gen_ai.conversation.id': conversation, ...rest } = attributes
  assert.equal(kind, SpanKind.CLIENT)
  assert.equal(conversation, span('invoke_agent').attributes['gen_ai.conversation.id'])
  assert.deepEqual(rest, {
    'openinference.span.kind': 'LLM',
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'claude',
    'gen_ai.request.temperature': 0.5,
    'gen_ai.request.top_p': 0.9,
    'gen_ai.request.top_k': 4,
    'gen_ai.request.max_tokens': 99,
    'gen_ai.request.seed': 1,
    'gen_ai.request.stop_sequences': ['END'],
    'gen_ai.response.model': 'claude-20990101',
    'gen_ai.response.finish_reasons': ['length'],
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 20,
    'gen_ai.usage.cache_read.input_tokens': 60,
    'gen_ai.usage.cache_creation.input_tokens': 30,
    'gen_ai.usage.reasoning.output_tokens': 7,
    'hookloop.cost_usd': 0.25,
  })
})

test('the span of the execution has the agent, the status and the total usage', async () => {
  const model = scriptedModel([{ toolCalls: [{ name: 'read' }] }, 'Done.'], { usage: { costUsd: 0.1 } })
  const { span, run } = await trace({ model }, { use: [read], agentName: 'reader' })
  const { attributes, kind } = span('invoke_agent reader')
  assert.equal(kind, SpanKind.INTERNAL)
  assert.deepEqual(attributes, {
    'openinference.span.kind': 'AGENT',
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'reader',
    'gen_ai.agent.id': run.state.agentId,
    'gen_ai.conversation.id': run.state.agentId,
    'gen_ai.provider.name': 'scripted',
    'gen_ai.request.model': 'script',
    'gen_ai.usage.input_tokens': 20,
    'gen_ai.usage.output_tokens': 10,
    'hookloop.cost_usd': 0.2,
    'hookloop.execution.id': run.state.execution!.id,
    'hookloop.execution.status': 'completed',
    'hookloop.execution.steps': 2,
    'hookloop.execution.tool_calls': 1,
    'hookloop.stop.reason': 'completed',
    'hookloop.stop.by': 'completion',
  })
})

test('a failed model call is a failed span with its error code, and the retry has its own span', async () => {
  const model = scriptedModel([{ error: 'overloaded' }, 'Done.'])
  const { tree, spans } = await trace({ model }, { use: [errorPolicy({ backoffMs: 0 })] })
  assert.deepEqual(tree, [
    'invoke_agent',
    '  step 1',
    '    chat script !',
    '    hook errorPolicy.onError',
    '    chat script',
    '    hook completion',
  ])
  assert.equal(spans()[0]!.attributes['error.type'], 'MODEL_FAILED')
})

test('a failed run has its error on the step and on the execution', async () => {
  const { tree, span, run } = await trace({ model: scriptedModel([{ error: 'down' }]) })
  assert.equal(run.status, 'failed')
  assert.deepEqual(tree, ['invoke_agent !', '  step 1 !', '    chat script !'])
  assert.equal(span('invoke_agent').attributes['error.type'], 'MODEL_FAILED')
  assert.equal(span('invoke_agent').attributes['hookloop.stop.by'], 'error at aroundInference')
})

test('the span of a tool call says if it was blocked, failed, withheld or interrupted, and by which hook', async () => {
  const cancel = new AbortController()
  const broken = tool({ name: 'broken', description: '', input, execute: () => Promise.reject(new Error('no')) })
  const secret = tool({ name: 'secret', description: '', input, execute: () => 'secret' })
  const endless = tool({
    name: 'endless',
    description: '',
    input,
    execute: () => new Promise((_, reject) => setTimeout(() => (cancel.abort(), reject(new Error('aborted'))), 5)),
  })
  const withhold = guard('afterToolUse', (ctx) => ctx.block('private'), { name: 'private', tool: 'secret' })
  const otel = inMemory()
  const calls = ['erase', 'broken', 'secret', 'endless'].map((name) => ({ name }))
  const use = [erase, broken, secret, endless, noErase, withhold, otel.tracing]
  await createAgent({ model: scriptedModel([{ toolCalls: calls }]), use }).run('Go.', { signal: cancel.signal })
  const reported = otel.spans().flatMap(({ name, attributes, status }) => {
    const { 'hookloop.tool.status': ended, 'hookloop.tool.by': by, 'hookloop.tool.withheld': withheld } = attributes
    return ended === undefined ? [] : [[name, ended, by, withheld, status.code, attributes['error.type']]]
  })
  assert.deepEqual(reported, [
    ['execute_tool erase', 'blocked', 'no-erase', undefined, 2, 'blocked'],
    ['execute_tool broken', 'failed', undefined, undefined, 2, 'failed'],
    ['execute_tool secret', 'ok', 'private', true, 0, undefined],
    ['execute_tool endless', 'outcomeUnknown', undefined, undefined, 2, 'outcomeUnknown'],
  ])
})

test('the name of an unknown tool is in no span', async () => {
  const { tree, spans } = await trace({ model: scriptedModel([{ toolCalls: [{ name: 'made_up' }] }, 'Done.']) })
  assert.equal(tree[3], '    execute_tool !')
  assert.equal(JSON.stringify(spans().map(({ name, attributes }) => [name, attributes])).includes('made_up'), false)
})

test('concurrent calls have separate spans with their ids and results', async () => {
  const fastEnded = Promise.withResolvers<void>()
  const wait = tool({
    name: 'wait',
    description: '',
    input,
    concurrent: true,
    execute: async ({ how }) => {
      if (how === 'fast') {
        fastEnded.resolve()
        throw new Error('too short')
      }
      await fastEnded.promise
      await delay(30)
    },
  })
  const calls = ['slow', 'fast'].map((how) => ({ name: 'wait', id: how, args: { how } }))
  const { spans } = await trace({ model: scriptedModel([{ toolCalls: calls }, 'Done.']) }, { use: [wait] })
  const reported = spans().filter(({ name }) => name === 'execute_tool wait')
  const [slow, fast] = reported.map(timesOf)
  assert.deepEqual(
    reported.map(({ attributes }) => [attributes['gen_ai.tool.call.id'], attributes['hookloop.tool.status']]),
    [
      ['slow', 'ok'],
      ['fast', 'failed'],
    ],
  )
  assert.equal(slow!.start, fast!.start)
  assert.ok(fast!.end < slow!.end)
  assert.ok(slow!.end - slow!.start >= 29)
})

test('a response that a hook substituted names the hook, and is not measured as a model call', async () => {
  const content = [{ type: 'text', text: 'From memory.' }] as const
  const usage = { inputTokens: 9, outputTokens: 9 }
  const memory = hook('aroundInference', async () => ({ content, finishReason: 'stop', usage }) as never, {
    name: 'memory',
  })
  const { span, measured } = await trace({ model: scriptedModel([]) }, { use: [memory] })
  const { attributes } = span('chat script')
  assert.deepEqual(
    [attributes['hookloop.inference.by'], attributes['gen_ai.usage.input_tokens']],
    ['memory', undefined],
  )
  assert.deepEqual(await measured('gen_ai.client.operation.duration'), [])
})

test('hooks that decided, changed or failed have a span, or no hook has one', async () => {
  const use = [
    hook('beforeStep', (ctx) => ctx, { name: 'silent' }),
    hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata('seen', true)), { name: 'changing' }),
    hook('beforeStep', () => Promise.reject(new Error('no')), { name: 'failing', onFailure: 'continue' }),
    observe('beforeStep', () => Promise.resolve(), { name: 'watching' }),
  ]
  const shownWith = async (options: TracingOptions): Promise<readonly string[]> => {
    const { spans } = await trace({ model: scriptedModel(['Done.']) }, { use, ...options })
    const found = spans().filter(({ attributes }) => attributes['hookloop.hook.trigger'] === 'beforeStep')
    return found.map(({ attributes }) => attributes['hookloop.hook.name'] as string)
  }
  assert.deepEqual(await shownWith({}), ['changing', 'failing'])
  assert.deepEqual(await shownWith({ hooks: 'none' }), [])
})

test('only hookloop/tracing loads OpenTelemetry', () => {
  const loadedBy = (door: string): string => {
    const program = `
      import { registerHooks } from 'node:module'
      registerHooks({ load: (url, context, next) => (url.includes('opentelemetry') && console.log(url), next(url, context)) })
      await import(${JSON.stringify(new URL(door, import.meta.url).href)})`
    const args = ['--conditions=hookloop-source', '--input-type=module', '-e', program]
    const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    assert.equal(status, 0)
    return stdout
  }
  assert.equal(loadedBy('../index.ts') + loadedBy('../testing/index.ts'), '')
  assert.match(loadedBy('./index.ts'), /opentelemetry\/api/)
})
