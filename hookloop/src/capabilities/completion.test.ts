import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import type { FinishReason } from '../core/state/inference.ts'
import { guard, type Hook } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { fire } from '../testing/fire.ts'
import { completion } from './completion.ts'

const [done] = completion().hooks as [Hook<'afterStep'>]

test('a complete answer without tool calls completes the run', async () => {
  const run = await createAgent({ model: scriptedModel(['done']) }).run('go')
  const { at: _at, votes: _votes, ...record } = run.status === 'completed' ? run.final : assert.fail(run.status)
  assert.deepEqual(record, {
    status: 'completed',
    reason: 'completed',
    by: 'completion',
    message: 'The model called no more tools.',
  })
})

test('an incomplete answer stops the run with its finish reason', async () => {
  for (const finishReason of ['length', 'content-filter', 'error', 'other'] as const) {
    const run = await createAgent({ model: scriptedModel([{ text: 'half', finishReason }]) }).run('go')
    const { reason, by, value } = run.status === 'stopped' ? run.final : assert.fail(run.status)
    assert.deepEqual({ reason, by, value }, { reason: 'finishReason', by: 'completion', value: finishReason })
  }
})

test('an empty answer does not complete a run', async () => {
  const run = await createAgent({ model: scriptedModel(['']) }).run('go')
  assert.equal(run.status === 'stopped' && run.reason, 'finishReason')
})

test('a step with tool calls or an error does not end a run', async () => {
  const calls = { type: 'toolExecution', toolCalls: [{ id: '1', name: 'x', args: {} }] } as const
  assert.deepEqual(await fire(done, 'afterStep', { step: calls }), {})
  assert.deepEqual(await fire(done, 'afterStep', { step: { type: 'error', finishReason: 'other' } }), {})
})

test('completion allows a stop and never forces it', async () => {
  const finish: readonly FinishReason[] = ['stop', 'length']
  for (const finishReason of finish) {
    const { votes } = await fire(done, 'afterStep', { step: { text: 'done', finishReason } })
    assert.deepEqual(
      votes?.map((vote) => vote.decision),
      ['allowStop'],
    )
  }
})

test('an agent with its own completion has that instead', async () => {
  const own = {
    name: 'completion',
    hooks: [guard('afterStep', (ctx) => (ctx.step.text === 'over' ? ctx.allowStop('Over.') : ctx), { name: 'over' })],
  }
  const run = await createAgent({ model: scriptedModel(['not yet', 'over', 'too far']), use: [own] }).run('go')
  assert.equal(run.status === 'completed' && run.final.by, 'over')
  assert.equal(run.state.stepCount, 2)
})
