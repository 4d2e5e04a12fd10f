import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import type { Run } from '../../agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'

// A step that was open when a process died, and that another agent closes.

function agentWith(store: SessionStore, names: readonly string[], fired: string[] = []) {
  const tools = names.map((name) =>
    tool({ name, description: 'Acts.', input: { type: 'object' }, execute: () => 'done' }),
  )
  const notes = (['afterStep', 'onStop', 'afterExecution'] as const).map((trigger) =>
    hook(trigger, (ctx) => {
      fired.push(trigger)
      return ctx
    }),
  )
  const model = scriptedModel(({ messages }) => (messages.length < 2 ? { toolCalls: [{ name: 'act' }] } : 'Done.'))
  return createAgent({ model, store, use: [...tools, ...notes] })
}

/** The rest of a run that dies during the call of its first step, by an agent with one tool more. */
async function resumeWithAnotherTool(fired: string[] = []): Promise<Run> {
  const store = memoryStore()
  const dying = dyingStore(store, { at: 2, stored: true })
  await Promise.race([agentWith(dying, ['act']).run('Go.', { session: 's' }), dying.died])
  return agentWith(store, ['act', 'another'], fired).resume('s')
}

test('a call in a step that is closed because the agent has changed counts toward maxToolCalls', async () => {
  const run = await resumeWithAnotherTool()
  assert.deepEqual([run.warnings.map(({ code }) => code), run.state.usage.toolCalls], [['STEP_CLOSED'], 1])
})

test('hooks run once for a step that is closed because the agent has changed: not when the change is found', async () => {
  const fired: string[] = []
  const run = await resumeWithAnotherTool(fired)
  assert.equal(run.status, 'completed')
  assert.deepEqual(fired, ['afterStep', 'afterStep', 'onStop', 'afterExecution'])
})
