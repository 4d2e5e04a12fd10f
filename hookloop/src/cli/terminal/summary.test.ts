import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { tool } from '../../core/agent/tool.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { colorsFor } from './colors.ts'
import { summary } from './summary.ts'

const options = { elapsedMs: 1500, colors: colorsFor({}, {}) }
const usage = { inputTokens: 1000, outputTokens: 20, costUsd: 0.01 }
const rm = tool({ name: 'rm', description: '', input: { type: 'object' }, ask: true, execute: String })

test('the summary has the status and the usage on one line', async () => {
  const run = await createAgent({ model: scriptedModel(['Done.'], { usage }) }).run('Go.')
  assert.equal(summary(run, options), '✓ completed · 1 step · 1,000 tokens in, 20 out · $0.0100 · 1.5 s')
})

test('the summary of a run that did not complete has the reason, unless it was shown before', async () => {
  const calls = { toolCalls: [{ name: 'rm' }] }
  const model = scriptedModel(() => calls)
  const [stopped, failed, suspended, paused, cancelled, refused] = await Promise.all([
    createAgent({ model, use: [rm, guards({ maxSteps: 1 })] }).run('Go.'),
    createAgent({ model: scriptedModel([{ error: 'no line' }]) }).run('Go.'),
    createAgent({ model, use: [rm, approval('suspend')] }).run('Go.'),
    createAgent({ model, use: [rm] }).run('Go.', { drain: AbortSignal.abort() }),
    createAgent({ model }).run('Go.', { signal: AbortSignal.abort() }),
    createAgent({ model, use: [guard('onUserInput', (ctx) => ctx.block('Rude.'), { name: 'polite' })] }).run('Go.'),
  ])
  const heads = [stopped, failed, suspended, paused, cancelled, refused].map(
    (run) => summary(run, options).split(' · ')[0],
  )
  assert.deepEqual(heads, [
    '■ stopped (stepsLimit) by guards.maxSteps: Step limit reached: 1/1.',
    '✗ failed (MODEL_FAILED): no line',
    '‖ suspended, waiting for 1 approval',
    '‖ paused',
    '■ cancelled',
    '■ stopped (inputBlocked) by polite: Rude.',
  ])
  assert.match(summary(failed, { ...options, hasShown: () => true }), /^✗ failed \(MODEL_FAILED\) · 1 step/)
})
