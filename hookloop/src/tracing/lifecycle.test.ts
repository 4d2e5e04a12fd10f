import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { context, trace, type Tracer } from '@opentelemetry/api'
import type { Use } from '../core/agent/capability.ts'
import { tool } from '../core/agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import type { SavedRun } from '../core/state/saved-run.ts'
import { hook, observe } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { AsyncContexts, inMemory, timesOf, treeOf } from './in-memory.fixture.ts'

const input = { type: 'object' } as const
const pay = tool({ name: 'pay', description: 'Pays.', input, ask: true, execute: () => 'paid' })

function payer(use: readonly Use[]) {
  const model = scriptedModel(({ messages }) =>
    messages.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ name: 'pay', id: 'p' }] },
  )
  return createAgent({ model, use: [pay, ...use] })
}

async function suspendedRun(use: readonly Use[]) {
  const agent = payer([approval('suspend'), ...use])
  const run = await agent.run('Pay.')
  assert.ok(run.status === 'suspended')
  return { agent, run, id: run.pending[0]!.id }
}

test('a suspended run ends its spans, and the resumed run has new ones that link to them, also for hooks that run again', async () => {
  const otel = inMemory()
  const begin = hook('beforeExecution', (ctx) => ctx.withState((state) => state.withMetadata('a', 1)), {
    name: 'begin',
  })
  const { agent, run, id } = await suspendedRun([begin, otel.tracing])
  const before = otel.spans()
  await agent.resume(run, { answers: { [id]: 'allow' } })
  const after = otel.spans().slice(before.length)
  const [first, second] = [before.at(-1)!, after.at(-1)!]
  assert.deepEqual(treeOf(before), ['invoke_agent', '  hook begin', '  step 1', '    chat script'])
  assert.deepEqual(treeOf(after), [
    'invoke_agent',
    '  hook begin',
    '  step 1',
    '    hook hookloop',
    '    execute_tool pay',
    '  step 2',
    '    chat script',
    '    hook completion',
  ])
  assert.deepEqual(
    [first.attributes['hookloop.execution.status'], first.attributes['hookloop.execution.pending']],
    ['suspended', 1],
  )
  assert.deepEqual(
    second.links.map((link) => link.context),
    [first.spanContext()],
  )
  assert.deepEqual(
    [first, second].map(({ attributes }) => attributes['gen_ai.usage.input_tokens']),
    [10, 10],
  )
})

test('a run that resumes in another process has no link, and a blocked call still has its name', async () => {
  const { run, id } = await suspendedRun([inMemory().tracing])
  const elsewhere = inMemory()
  const saved = JSON.parse(JSON.stringify(run)) as SavedRun
  await payer([approval('suspend'), elsewhere.tracing]).resume(saved, { answers: { [id]: { block: 'No.' } } })
  assert.deepEqual(elsewhere.span('invoke_agent').links, [])
  assert.equal(elsewhere.span('execute_tool pay').attributes['hookloop.tool.by'], 'approval')
})

test('a run that is cancelled while it is suspended ends its spans', async () => {
  const otel = inMemory()
  const cancel = new AbortController()
  const stop = observe('onPause', () => cancel.abort(), { name: 'stop' })
  const run = await payer([approval('suspend'), stop, otel.tracing]).run('Pay.', { signal: cancel.signal })
  const [first, second] = otel.spans().filter(({ name }) => name === 'invoke_agent')
  assert.equal(run.status, 'cancelled')
  assert.equal(second!.attributes['hookloop.execution.status'], 'cancelled')
  assert.deepEqual(
    second!.links.map((link) => link.context),
    [first!.spanContext()],
  )
})

test('waiting for approval is not part of the duration of a tool', async () => {
  const otel = inMemory()
  const startedAt = performance.now()
  await payer([approval(() => delay(200, 'allow' as const)), otel.tracing]).run('Pay.')
  const { start, end } = timesOf(otel.span('execute_tool pay'))
  assert.ok(end - start <= performance.now() - startedAt - 150, `${end - start} ms`)
})

test('the execution is a child of the active span', async () => {
  context.setGlobalContextManager(new AsyncContexts())
  const otel = inMemory()
  const agent = createAgent({ model: scriptedModel(() => 'Done.'), use: [otel.tracing] })
  const parent = otel.tracer.startSpan('request')
  try {
    await context.with(trace.setSpan(context.active(), parent), () => agent.run('Go.'))
    await agent.run('Go.')
  } finally {
    context.disable()
  }
  const [inside, outside] = otel.spans().filter(({ name }) => name === 'invoke_agent')
  assert.deepEqual(inside!.parentSpanContext?.spanId, parent.spanContext().spanId)
  assert.equal(outside!.parentSpanContext, undefined)
})

const down = (): never => {
  throw new Error('the collector is down')
}

test('an error of a tracer or meter is noted in the ledger and does not change the run', async () => {
  const tracer = { startSpan: down, startActiveSpan: down } as unknown as Tracer
  const meter = { createHistogram: down } as never
  for (const broken of [{ tracer }, { meter }]) {
    const otel = inMemory(broken)
    const { agent, run, id } = await suspendedRun([otel.tracing])
    const resumed = await agent.resume(run, { answers: { [id]: 'allow' } })
    assert.deepEqual([resumed.status, resumed.text], ['completed', 'Done.'])
    assert.ok(resumed.ledger.some(({ hook: name, error }) => name === 'tracing' && error === 'the collector is down'))
  }
})

test('a run with tracing replays without it, and the other way round, and a replay is not traced', async () => {
  const otel = inMemory()
  for (const [first, second] of [
    [[inMemory().tracing], []],
    [[], [otel.tracing]],
    [[inMemory({ meter: { createHistogram: down } as never }).tracing], []],
  ] as const) {
    const store = memoryStore()
    const agentWith = (use: readonly Use[]) => {
      const model = scriptedModel([{ toolCalls: [{ name: 'pay' }] }, 'Done.'])
      return createAgent({ model, store, use: [pay, approval(() => 'allow'), ...use] })
    }
    await agentWith(first).run('Pay.', { session: 's' })
    await strictReplay(agentWith(second), store, 's')
  }
  assert.deepEqual(otel.spans(), [])
})
