import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Run } from '../core/agent/run.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { liveEffects } from '../core/effects/effects.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../models/scripted.ts'
import { stopReasons } from '../core/state/continuation.ts'
import { fakeClock } from '../testing/fake-clock.ts'
import { fire } from '../testing/fire.ts'
import { approval } from './approval.ts'
import { guards } from './guards.ts'

const ping: ScriptedTurn = { toolCalls: [{ name: 'ping' }] }

function pingTool(execute: () => unknown = () => 'pong', options: { concurrent?: boolean } = {}) {
  return tool({ name: 'ping', description: 'Answers.', input: { type: 'object' }, execute, ...options })
}

/** Which hook stopped a run, why and on what value. */
function stopOf(run: Run): object {
  assert.equal(run.status, 'stopped')
  return { reason: run.final.reason, by: run.final.by, value: run.final.value }
}

test('an agent has the default limits in its description', () => {
  const { notes, hooks } = createAgent({ model: scriptedModel([]) }).describe()
  assert.deepEqual(notes.slice(0, 1), [
    'Limits: maxSteps: 50 (default), maxTokens: 2000000 (default), maxTimeMs: 1800000 (default).',
  ])
  assert.deepEqual(
    hooks.filter((each) => each.name.startsWith('guards.')).map((each) => [each.name, each.mode]),
    [
      ['guards.maxSteps', 'guard'],
      ['guards.maxTokens', 'guard'],
      ['guards.maxTimeMs', 'guard'],
    ],
  )
})

test('an agent with its own guards has those, and defaults for omitted limits', () => {
  const agent = createAgent({ model: scriptedModel([]), use: [guards({ maxSteps: 3, maxTimeMs: null, maxCost: 1 })] })
  assert.deepEqual(agent.describe().notes.slice(0, 1), [
    'Limits: maxSteps: 3, maxTokens: 2000000 (default), maxTimeMs: none, maxCost: 1.',
  ])
})

test('the docs have the default limits, and every stop reason in the order of urgency', () => {
  const page = readFileSync(new URL('../../../site/concepts/stopping.md', import.meta.url), 'utf8')
  const { notes } = createAgent({ model: scriptedModel([]) }).describe()
  for (const [, limit, value] of page.matchAll(/^\| `(max\w+)` \| [^|]*\\\| null` \| ([\w,]+) \|/gm)) {
    const shown = `${limit}: ${value!.replaceAll(',', '')} (default)`
    assert.equal(notes[0]!.includes(shown), value !== 'none', shown)
  }
  const [, reasons = ''] = page.split('| reason, most urgent first |')
  const listed = [...reasons.split('\n\n')[0]!.matchAll(/^\| ([^|]*) \|/gm)].flatMap(([, cell]) => [
    ...cell!.matchAll(/`(\w+)`/g),
  ])
  assert.deepEqual(
    listed.map(([, reason]) => reason),
    stopReasons,
  )
})

test('by default the fifty-first step is not taken', async () => {
  const model = scriptedModel(() => ping, { usage: { inputTokens: 0, outputTokens: 0 } })
  const run = await createAgent({ model, use: [pingTool()] }).run('go')
  assert.deepEqual(stopOf(run), { reason: 'stepsLimit', by: 'guards.maxSteps', value: { value: 50, limit: 50 } })
  assert.equal(model.requests.length, 50)
})

test('by default no model is called after 2,000,000 tokens', async () => {
  const model = scriptedModel(() => ping, { usage: { inputTokens: 900_000, outputTokens: 100_000 } })
  const run = await createAgent({ model, use: [pingTool()] }).run('go')
  const value = { value: 2_000_000, limit: 2_000_000 }
  assert.deepEqual(stopOf(run), { reason: 'tokenLimit', by: 'guards.maxTokens', value })
  assert.equal(model.requests.length, 2)
})

test('by default nothing starts after 30 minutes', async () => {
  const clock = fakeClock()
  const slow = pingTool(() => clock.advance(1_800_000))
  const run = await createAgent({ model: scriptedModel(() => ping), use: [slow] }).run('go', {
    effects: liveEffects({ clock }),
  })
  const value = { value: 1_800_000, limit: 1_800_000 }
  assert.deepEqual(stopOf(run), { reason: 'timeLimit', by: 'guards.maxTimeMs', value })
})

test('a limit is reached at its value, not beyond it', async () => {
  const { hooks = [] } = guards({ maxTokens: 100, maxCost: 0.5 })
  const [, tokens, , cost] = hooks
  const reached = await fire(tokens!, 'beforeInference', { spent: { inputTokens: 60, outputTokens: 40 } })
  const below = await fire(tokens!, 'beforeInference', { spent: { inputTokens: 60, outputTokens: 39 } })
  const paid = await fire(cost!, 'beforeStep', { spent: { costUsd: 0.5 } })
  assert.deepEqual(reached.votes?.[0]?.value, { value: 100, limit: 100 })
  assert.deepEqual(below, {})
  assert.deepEqual(paid.votes?.[0]?.value, { value: 0.5, limit: 0.5 })
})

test('calls of a step beyond the tool call limit are not executed', async () => {
  let ran = 0
  const model = scriptedModel(() => ({ toolCalls: Array.from({ length: 5 }, () => ({ name: 'ping' })) }))
  const counted = pingTool(() => ++ran)
  const run = await createAgent({ model, use: [counted, guards({ maxToolCalls: 2 })] }).run('go')
  assert.deepEqual(stopOf(run), { reason: 'toolCallLimit', by: 'guards.maxToolCalls', value: { value: 3, limit: 2 } })
  const statuses = run.state.lastStep!.toolExecutions.map((each) => each.status)
  assert.deepEqual(statuses, ['ok', 'ok', 'blocked', 'blocked', 'blocked'])
  assert.equal(ran, 2)
})

test('blocked calls count towards the tool call limit', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
  const use = [pingTool(), never, guards({ maxToolCalls: 2 })]
  const run = await createAgent({ model: scriptedModel(() => ping), use }).run('go')
  assert.deepEqual(stopOf(run), { reason: 'toolCallLimit', by: 'guards.maxToolCalls', value: { value: 3, limit: 2 } })
})

test('no call of a concurrent group runs if one of them exceeds the limit', async () => {
  let ran = 0
  const model = scriptedModel(() => ({ toolCalls: Array.from({ length: 3 }, () => ({ name: 'ping' })) }))
  const together = pingTool(() => ++ran, { concurrent: true })
  const run = await createAgent({ model, use: [together, guards({ maxToolCalls: 2 })] }).run('go')
  assert.equal(run.status === 'stopped' && run.reason, 'toolCallLimit')
  assert.equal(ran, 0)
})

test('time is checked before each tool, not only before each step', async () => {
  const clock = fakeClock()
  const slow = pingTool(() => clock.advance(60))
  const model = scriptedModel([{ toolCalls: [{ name: 'ping' }, { name: 'ping' }, { name: 'ping' }] }])
  const run = await createAgent({ model, use: [slow, guards({ maxTimeMs: 100 })] }).run('go', {
    effects: liveEffects({ clock }),
  })
  assert.deepEqual(stopOf(run), { reason: 'timeLimit', by: 'guards.maxTimeMs', value: { value: 120, limit: 100 } })
  assert.deepEqual(
    run.state.lastStep!.toolExecutions.map((each) => each.status),
    ['ok', 'ok', 'blocked'],
  )
})

test('time spent waiting for approval does not count', async () => {
  const clock = fakeClock()
  const effects = liveEffects({ clock })
  const agent = createAgent({
    model: scriptedModel([ping, 'done']),
    use: [pingTool(), approval({ answer: 'suspend', tools: ['ping'] }), guards({ maxTimeMs: 100 })],
  })
  const waiting = await agent.run('go', { effects })
  await clock.advance(86_400_000)
  const pending = waiting.status === 'suspended' ? waiting.pending : []
  const run = await agent.resume(waiting, { answers: { [pending[0]!.id]: 'allow' }, effects })
  assert.equal(run.status, 'completed')
})

test('an around hook that repeats the call exceeds the token limit by at most one call', async () => {
  const model = scriptedModel(() => 'again', { usage: { inputTokens: 100, outputTokens: 0 } })
  const insist = hook(
    'aroundInference',
    async (_ctx, next) => {
      for (let i = 0; i < 5; i++) await next()
      return next()
    },
    { name: 'insist' },
  )
  await createAgent({ model, use: [insist, guards({ maxTokens: 150 })] }).run('go')
  assert.equal(model.requests.length, 2)
})

test('a listed finish reason stops the run, even with tool calls', async () => {
  let ran = 0
  const model = scriptedModel([{ toolCalls: [{ name: 'ping' }], finishReason: 'length' }])
  const use = [pingTool(() => ++ran), guards({ finishReasons: ['length', 'content-filter'] })]
  const run = await createAgent({ model, use }).run('go')
  assert.deepEqual(stopOf(run), { reason: 'finishReason', by: 'guards.finishReasons', value: 'length' })
  assert.equal(ran, 0)
})

test('a limit on cost stops a run before a call of a model that does not say what it costs', async () => {
  const model = scriptedModel(['Hello.'])
  const { cost: _cost, ...unpriced } = model
  const run = await createAgent({ model: unpriced, use: [guards({ maxCost: 1 })] }).run('go')
  assert.ok(run.status === 'stopped')
  assert.deepEqual([run.reason, run.final.by, model.requests.length], ['costLimit', 'guards.maxCost', 0])
  assert.match(run.final.message, /the price of scripted\/script is unknown/)
})
