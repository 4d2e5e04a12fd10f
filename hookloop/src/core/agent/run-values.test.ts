import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { subagents } from '../../capabilities/subagents/index.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../hooks/hook.ts'
import { triggerNames, triggers, type HookTrigger } from '../hooks/triggers.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { Use } from './capability.ts'
import { tool } from './tool.ts'

const asking = tool({ name: 'ask', description: 'Asks.', input: { type: 'object' }, execute: () => 'ok', ask: true })
const twoSteps = () => scriptedModel([{ toolCalls: [{ name: 'ask' }] }, 'done'])

test('run.reason is there for every status, and undefined while the run is suspended', async () => {
  const reasonWith = async (...use: readonly Use[]): Promise<string | undefined> => {
    const run = await createAgent({ model: scriptedModel(() => 'done'), use }).run('go')
    return run.reason
  }
  assert.equal(await reasonWith(), 'completed')
  assert.equal(await reasonWith(guard('beforeStep', (ctx) => ctx.stop('no'))), 'stopRequested')
  assert.equal(await reasonWith(guard('onUserInput', (ctx) => ctx.block('no'))), 'inputBlocked')
  const cancelled = await createAgent({ model: scriptedModel(['a']) }).run('go', { signal: AbortSignal.abort() })
  assert.equal(cancelled.reason, 'userRequested')
  const failed = await createAgent({ model: scriptedModel([]) }).run('go')
  assert.equal(failed.reason, 'errorForbade')
  const suspended = await createAgent({ model: twoSteps(), use: [asking, approval('suspend')] }).run('go')
  assert.deepEqual([suspended.status, suspended.reason], ['suspended', undefined])
})

test('only a completed run has an output: not one that ended at a tool step, with a blank answer, or that is suspended', async () => {
  const suspended = createAgent({ model: twoSteps(), use: [asking, approval('suspend')] })
  const runs = [
    await createAgent({ model: twoSteps(), use: [asking, guards({ maxSteps: 1 })] }).run('go'),
    await createAgent({ model: scriptedModel(['']) }).run('go'),
    await suspended.run('go'),
  ]
  for (const run of runs) assert.deepEqual(['output' in run, run.text], [false, ''])
})

test('a run from an ended state starts a new execution, and executions are counted', async () => {
  const agent = createAgent({ model: scriptedModel(['one', 'two', 'three']) })
  const first = await agent.run('go')
  const second = await agent.run('go', { from: first })
  const third = await agent.run('go', { from: JSON.parse(JSON.stringify(second)) as SavedRun })
  const states = [first, second, third].map(({ state }) => state)
  assert.deepEqual(
    states.map(({ executionCount }) => executionCount),
    [1, 2, 3],
  )
  assert.equal(new Set(states.map(({ execution }) => execution!.id)).size, 3)
})

test('triggers can be iterated with its types', () => {
  const names: HookTrigger[] = []
  for (const trigger of triggers) {
    names.push(trigger)
    assert.ok(Array.isArray(triggers[trigger].carries))
  }
  assert.deepEqual(names, triggerNames)
  assert.deepEqual(Object.keys(triggers), triggerNames)
})

for (const inSession of [false, true]) {
  test(`a run is resumed step by step${inSession ? ', also in a session' : ''}`, async () => {
    const agent = createAgent({
      model: scriptedModel([{ toolCalls: [{ name: 'ask' }] }, { toolCalls: [{ name: 'ask' }] }, 'done']),
      use: [asking, approval('suspend')],
      store: memoryStore(),
    })
    const run = await agent.run('go', inSession ? { session: 's' } : {})
    assert.ok(run.status === 'suspended')
    const live = agent.resumeIterate(inSession ? 's' : run, { answers: { [run.pending[0]!.id]: 'allow' } })
    const seen: (number | undefined)[] = []
    for await (const state of live) seen.push(state.stepCount)
    const end = await live.run
    assert.deepEqual([seen, end.status], [[1, 1], 'suspended'])
  })
}

test('a stop of an inherited guard inside a child ends the child, and its parent decides what follows', async () => {
  const child = { description: 'Works.', instructions: 'Work.' }
  const spawn = { name: 'spawn_subagent', args: { subagent: 'child', prompt: 'go' } }
  const model = scriptedModel([{ toolCalls: [spawn] }, { toolCalls: [{ name: 'ask' }] }, 'I go on without it.'])
  const noAsk = guard('beforeToolUse', (ctx) => ctx.stop('Never.'), { name: 'noAsk', tool: 'ask' })
  const base = [subagents({ agents: { child } }), asking, noAsk]
  const run = await createAgent({ model, use: base }).run('go')
  assert.deepEqual([run.status, run.text], ['completed', 'I go on without it.'])
  const result = run.state.execution!.steps.at(0)!.toolExecutions[0]!
  assert.match(JSON.stringify(result.output), /was stopped by \\"noAsk\\" before it had finished: Never\./)

  const endsAll = guard('onSubagentStop', (ctx) =>
    ctx.outcome.resolvedBy === 'noAsk' ? ctx.block('Not without that call.') : ctx,
  )
  const stops = guard('afterToolUse', (ctx) =>
    ctx.toolExecution.withheld === true ? ctx.stop('The child was stopped.') : ctx,
  )
  const again = scriptedModel([{ toolCalls: [spawn] }, { toolCalls: [{ name: 'ask' }] }, 'never said'])
  const ended = await createAgent({ model: again, use: [...base, endsAll, stops] }).run('go')
  assert.deepEqual([ended.status, ended.reason], ['stopped', 'stopRequested'])
})
