import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../../agent/capability.ts'
import { tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import {
  executionHistory,
  getExecutionHistory,
  type ExecutionHistoryOptions,
  type ExecutionSummary,
} from './execution-history.ts'

const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
const looking = { toolCalls: [{ name: 'look' }] }

function agentOn(script: Script, options?: ExecutionHistoryOptions, ...use: readonly Use[]) {
  return createAgent({ model: scriptedModel(script), use: [look, executionHistory(options), ...use] })
}

test('each execution of a conversation has a summary, oldest first', async () => {
  const agent = agentOn([looking, 'One.', looking, looking, 'Two.'], {}, guards({ maxSteps: 2 }))
  const first = await agent.run('Go.')
  const second = await agent.run('Again.', { from: first })
  const reported = getExecutionHistory(second.state).map(({ number, status, reason, steps }) => ({
    number,
    status,
    reason,
    steps,
  }))
  assert.deepEqual(reported, [
    { number: 1, status: 'completed', reason: 'completed', steps: 2 },
    { number: 2, status: 'stopped', reason: 'stepsLimit', steps: 2 },
  ])
  const { id, usage, by, message, durationMs, startedAt, endedAt } = getExecutionHistory(second.state)[1]!
  assert.deepEqual([id, usage, by], [second.state.execution!.id, second.state.execution!.usage, 'guards.maxSteps'])
  assert.deepEqual([message, durationMs], ['Step limit reached: 2/2.', endedAt - startedAt])
})

test('errors are counted, and the last ones are stored with shortened messages', async () => {
  const failing = { error: 'x'.repeat(2_000) }
  const agent = agentOn(
    [...Array.from({ length: 7 }, () => failing), 'Done.'],
    {},
    errorPolicy({ maxRetries: 8, backoffMs: 0 }),
  )
  const [summary] = getExecutionHistory((await agent.run('Go.')).state)
  assert.deepEqual([summary!.errorCount, summary!.errors.length, summary!.errors[0]!.message.length], [7, 5, 501])
})

test('the state has only the latest maxEntries', async () => {
  const agent = agentOn(Array<string>(5).fill('ok'), { maxEntries: 2 })
  let run = await agent.run('Go.')
  for (let i = 0; i < 4; i++) run = await agent.run('Go.', { from: run })
  assert.deepEqual(
    getExecutionHistory(run.state).map(({ number }) => number),
    [4, 5],
  )
})

test('a suspended run has no summary until it has ended', async () => {
  const agent = agentOn([looking, 'Done.'])
  const live = agent.iterate('Go.')
  for await (const state of live) if (state.stepCount === 1) break
  const paused = await live.run
  assert.deepEqual([paused.status, getExecutionHistory(paused.state)], ['suspended', []])
  const run = await agent.resume(JSON.parse(JSON.stringify(paused)) as never)
  assert.deepEqual(
    getExecutionHistory(run.state).map(({ number, steps }) => [number, steps]),
    [[1, 2]],
  )
})

test('a store gets every summary once, not from a replay, and a failing store does not change the run', async () => {
  const stored: ExecutionSummary[] = []
  const run = await agentOn(['ok'], { store: { append: (summary) => void stored.push(summary) } }).run('Go.')
  assert.deepEqual(stored, getExecutionHistory(run.state))
  const sessions = memoryStore()
  const history = executionHistory({ store: { append: (summary) => void stored.push(summary) } })
  const again = createAgent({ model: scriptedModel(['ok']), store: sessions, use: [history] })
  await again.run('Go.', { session: 's' })
  await strictReplay(again, sessions, 's')
  assert.equal(stored.length, 2)
  const broken = agentOn(['ok'], { store: { append: () => Promise.reject(new Error('disk full')) } })
  const after = await broken.run('Go.')
  assert.deepEqual([after.status, getExecutionHistory(after.state).length], ['completed', 1])
  assert.match(JSON.stringify(after.ledger), /executionHistory\.store.*disk full/)
})

test('invalid metadata is an empty history, and invalid options are rejected by name', async () => {
  const run = await agentOn(['ok']).run('Go.', { metadata: { 'hookloop.executionHistory': [{ no: 'summary' }] } })
  assert.equal(getExecutionHistory(run.state).length, 1)
  assert.throws(() => executionHistory({ maximum: 1 } as never), /unknown option "maximum"/)
  assert.throws(() => executionHistory({ maxEntries: 0 }), /"maxEntries" must be/)
  assert.throws(() => executionHistory({ store: {} as never }), /"store" must be a store with append\(\), not \{\}/)
})
