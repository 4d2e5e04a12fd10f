import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool, type Tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { planning, planningDefaults, type PlanningOptions } from './planning.ts'

const named = (name: string): Tool =>
  tool({ name, description: name, input: { type: 'object' }, execute: () => `${name} ran` })
const tools = ['read_file', 'write_file', 'bash', 'spawn_subagent'].map(named)

function world(options: PlanningOptions = {}, use: Parameters<typeof createAgent>[0]['use'] = []) {
  const model = scriptedModel(({ system, messages }): ScriptedTurn => {
    const isPlanner = system === (options.plannerInstructions ?? planningDefaults.plannerInstructions)
    if (isPlanner && messages.length === 1)
      return {
        toolCalls: [
          { name: 'read_file', id: 'r' },
          { name: 'bash', id: 'b' },
        ],
      }
    if (isPlanner) return '1. Do it.'
    return messages.length === 1
      ? { toolCalls: [{ name: 'plan_with_subagent', args: { specification: 'Build it.' } }] }
      : 'Done.'
  })
  return {
    model,
    agent: createAgent({ model, instructions: 'You build.', use: [...tools, planning(options), ...use] }),
  }
}

test('a planner reads and returns a plan, and has no other tools', async () => {
  const { agent, model } = world()
  const run = await agent.run('Go.')
  const planner = model.requests.find(({ system }) => system === planningDefaults.plannerInstructions)!
  assert.deepEqual(
    planner.tools.map(({ name }) => name),
    ['read_file'],
  )
  assert.deepEqual(run.state.execution!.steps.at(0)!.toolExecutions[0]!.output, '1. Do it.')
  assert.ok(run.ledger.some(({ path, message }) => path !== undefined && /There is no tool "bash"/.test(message ?? '')))
  assert.deepEqual(run.warnings, [])
})

test('a planner never gets the tools to plan or to spawn subagents', async () => {
  const { agent, model } = world({ tools: ['*'] })
  await agent.run('Go.')
  const planner = model.requests.find(({ system }) => system === planningDefaults.plannerInstructions)!
  assert.deepEqual(
    planner.tools.map(({ name }) => name),
    ['read_file', 'write_file', 'bash'],
  )
})

test('the instructions are appended once to the system prompt of the agent, not of the planner', async () => {
  const { agent, model } = world()
  const run = await agent.run('Go.')
  const own = model.requests.filter(({ system }) => system !== planningDefaults.plannerInstructions)
  assert.deepEqual(
    own.map(({ system }) => system),
    Array(2).fill(`You build.\n\n${planningDefaults.instructions}`),
  )
  assert.equal(run.state.systemPrompt, 'You build.')
})

test('guards of the agent judge the planner', async () => {
  const noReading = guard('beforeToolUse', (ctx) => ctx.block('secret'), { name: 'noReading', tool: 'read_file' })
  const run = await world({}, [noReading]).agent.run('Go.')
  assert.ok(
    run.ledger.some(({ hook, path, decision }) => hook === 'noReading' && path !== undefined && decision === 'block'),
  )
})

test('instructions, model and limits of the planner are options', async () => {
  const model = scriptedModel(['2. Otherwise.'])
  const { agent } = world({ model, plannerInstructions: 'Plan!', limits: { maxSteps: 1 }, instructions: '' })
  const run = await agent.run('Go.')
  assert.deepEqual(run.state.execution!.steps.at(0)!.toolExecutions[0]!.output, '2. Otherwise.')
  assert.equal(model.requests[0]!.system, 'Plan!')
})

test('invalid options are rejected', () => {
  assert.throws(() => planning({ tool: [] } as never), /unknown option "tool"/)
  assert.throws(() => planning({ tools: 'read_file' } as never), /"tools" must be a list/)
})
