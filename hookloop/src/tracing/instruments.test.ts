import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { metrics, trace } from '@opentelemetry/api'
import { tool } from '../core/agent/tool.ts'
import { errorPolicy } from '../capabilities/error-policy.ts'
import { createAgent } from '../create-agent.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { inMemory, type Measured } from './in-memory.fixture.ts'
import { tracing } from './tracing.ts'

const input = { type: 'object' } as const
const model = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'scripted', 'gen_ai.request.model': 'script' }

function untimed(points: readonly Measured[]): readonly object[] {
  return points.map(({ sum: _sum, ...point }) => point)
}

test('tokens are measured by type, for every attempt that reported some', async () => {
  const otel = inMemory()
  const script = scriptedModel(['Done.', { text: 'Done.', usage: { inputTokens: 100, outputTokens: 50 } }])
  const agent = createAgent({ model: script, use: [otel.tracing] })
  const first = await agent.run('Go.')
  await agent.run('Go.', { from: first })
  assert.deepEqual(await otel.measured('gen_ai.client.token.usage'), [
    { ...model, 'gen_ai.token.type': 'input', count: 2, sum: 110 },
    { ...model, 'gen_ai.token.type': 'output', count: 2, sum: 55 },
  ])
})

const secondsSince = (startedAt: number): number => (performance.now() - startedAt) / 1_000

test('model calls are timed in seconds, failed ones by their error', async () => {
  const startedAt = performance.now()
  const otel = inMemory()
  const script = scriptedModel([{ error: 'down' }, { text: 'Done.', delayMs: 30 }])
  await createAgent({ model: script, use: [errorPolicy({ backoffMs: 0 }), otel.tracing] }).run('Go.')
  const points = await otel.measured('gen_ai.client.operation.duration')
  assert.deepEqual(untimed(points), [
    { ...model, 'error.type': 'MODEL_FAILED', count: 1 },
    { ...model, count: 1 },
  ])
  assert.ok(points[1]!.sum! >= 0.029 && points[1]!.sum! <= secondsSince(startedAt))
})

test('tools are timed by name and status; a blocked call is not timed', async () => {
  const startedAt = performance.now()
  const otel = inMemory()
  const slow = tool({ name: 'slow', description: '', input, execute: () => delay(20, 'late') })
  const broken = tool({ name: 'broken', description: '', input, execute: () => Promise.reject(new Error('no')) })
  const never = tool({ name: 'never', description: '', input, execute: () => '' })
  const calls = ['slow', 'broken', 'never', 'made_up'].map((name) => ({ name }))
  const no = guard('beforeToolUse', (ctx) => ctx.block('no'), { tool: 'never' })
  const script = scriptedModel([{ toolCalls: calls }, 'Done.'])
  await createAgent({ model: script, use: [slow, broken, never, no, otel.tracing] }).run('Go.')
  const points = await otel.measured('hookloop.tool.duration')
  assert.deepEqual(untimed(points), [
    { 'gen_ai.tool.name': 'slow', 'hookloop.tool.status': 'ok', count: 1 },
    { 'gen_ai.tool.name': 'broken', 'hookloop.tool.status': 'failed', 'error.type': 'failed', count: 1 },
  ])
  assert.ok(points[0]!.sum! >= 0.019 && points[0]!.sum! <= secondsSince(startedAt))
})

test('executions are timed by status', async () => {
  const startedAt = performance.now()
  const otel = inMemory({ agentName: 'timed' })
  const script = scriptedModel([{ text: 'Done.', delayMs: 20 }, { error: 'down' }])
  const agent = createAgent({ model: script, use: [otel.tracing] })
  const first = await agent.run('Go.')
  await agent.run('Go.', { from: first })
  const points = await otel.measured('hookloop.execution.duration')
  const name = { 'gen_ai.agent.name': 'timed' }
  assert.deepEqual(untimed(points), [
    { ...name, 'hookloop.execution.status': 'completed', count: 1 },
    { ...name, 'hookloop.execution.status': 'failed', 'error.type': 'MODEL_FAILED', count: 1 },
  ])
  assert.ok(points[0]!.sum! >= 0.019 && points[0]!.sum! <= secondsSince(startedAt))
})

test('the global tracer and meter are the default, also if they are registered after the agent', async () => {
  const otel = inMemory()
  const agent = createAgent({ model: scriptedModel(() => 'Done.'), use: [tracing()] })
  await agent.run('Go.')
  trace.setGlobalTracerProvider(otel.provider)
  metrics.setGlobalMeterProvider(otel.meters)
  try {
    await agent.run('Go.')
  } finally {
    trace.disable()
    metrics.disable()
  }
  assert.equal(otel.span('invoke_agent').instrumentationScope.name, 'hookloop')
  assert.deepEqual(untimed(await otel.measured('hookloop.execution.duration')), [
    { 'hookloop.execution.status': 'completed', count: 1 },
  ])
})
