import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../core/explain/explain.ts'
import type { Run } from '../../core/agent/run.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { guards } from '../guards.ts'
import { subagents, type SubagentsOptions } from './subagents.ts'

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  concurrent: true,
  execute: () => 'seen',
})
const read = tool({ name: 'read_file', description: 'Reads.', input: { type: 'object' }, execute: () => 'text' })

const spawn = (subagent: string, prompt = 'Go.') => ({ name: 'spawn_subagent', args: { subagent, prompt } })

/** The parent spawns once and ends; children answer by their instructions. */
function model(...first: readonly ReturnType<typeof spawn>[]): ScriptedModel {
  return scriptedModel(({ system, messages }): ScriptedTurn => {
    if (system === '') return messages.length === 1 ? { toolCalls: first } : 'Done.'
    if (system.startsWith('nest ') && messages.length === 1) return { toolCalls: [spawn(system.slice(5))] }
    return `I am ${system}.`
  })
}
const outputs = (run: Run): readonly unknown[] =>
  run.state.execution!.steps.at(0)!.toolExecutions.map(({ output }) => output)
const offered = ({ requests }: ScriptedModel, of: string) =>
  requests.filter(({ system }) => system === of).map(({ tools }) => tools.map(({ name }) => name))

test('a subagent is selected by its name and answers', async () => {
  const agent = createAgent({
    model: model(spawn('scout')),
    use: [look, subagents({ agents: { scout: { description: 'Looks around.', instructions: 'a scout' } } })],
  })
  assert.deepEqual(outputs(await agent.run('Go.')), ['I am a scout.'])
})

test('the tool lists the agents, and the model can select no other', () => {
  const { tools } = subagents({
    agents: { scout: { description: 'Looks around.' }, scribe: { description: 'Writes things down.' } },
  })
  const [{ name, description, inputSchema, concurrent }] = tools as [(typeof tools & {})[number]]
  assert.deepEqual([name, concurrent], ['spawn_subagent', true])
  assert.match(description, /- scout: Looks around\.\n- scribe: Writes things down\./)
  assert.deepEqual((inputSchema as { properties: { subagent: { enum: string[] } } }).properties.subagent.enum, [
    'scout',
    'scribe',
  ])
})

test('subagents are nested up to maxDepth, and the deepest is not offered spawn_subagent', async () => {
  const chain = Object.fromEntries(
    [1, 2, 3, 4].map((n) => [`a${n}`, { description: `${n}`, instructions: n < 4 ? `nest a${n + 1}` : 'the last' }]),
  )
  const reported = model(spawn('a1'))
  const run = await createAgent({ model: reported, use: [look, subagents({ agents: chain, maxDepth: 3 })] }).run('Go.')
  assert.deepEqual(offered(reported, 'nest a2')[0], ['look', 'spawn_subagent'])
  assert.deepEqual(offered(reported, 'nest a4')[0], ['look'], 'it is three deep')
  assert.deepEqual(offered(reported, 'the last'), [])
  const failed = run.ledger.find(({ message }) => /There is no tool "spawn_subagent"/.test(message ?? ''))
  assert.deepEqual([run.status, failed?.path?.length], ['completed', 3])
})

test('omitted tools mean all, an empty list means none, and names of other programs are aliases', async () => {
  const reported = model(...['all', 'none', 'claude', 'wild', 'blocked'].map((name) => spawn(name)))
  const agents: SubagentsOptions['agents'] = {
    all: { description: 'x', instructions: 'all' },
    none: { description: 'x', instructions: 'none', tools: [] },
    claude: { description: 'x', instructions: 'claude', tools: ['Read', 'Bash', 'WebSearch'] },
    wild: { description: 'x', instructions: 'wild', tools: ['*oo*'] },
    blocked: { description: 'x', instructions: 'blocked', disallowedTools: ['Read', 'Task'] },
  }
  const run = await createAgent({ model: reported, use: [look, read, subagents({ agents })] }).run('Go.')
  assert.deepEqual(offered(reported, 'all'), [['look', 'read_file', 'spawn_subagent']])
  assert.deepEqual(offered(reported, 'none'), [[]])
  assert.deepEqual(offered(reported, 'claude'), [['read_file']])
  assert.deepEqual(offered(reported, 'wild'), [['look']])
  assert.deepEqual(offered(reported, 'blocked'), [['look']])
  assert.match(explain(run), /warnings .*"claude" names tools that its parent does not have: bash, WebSearch/)
})

test('the model of a subagent is an object, a name or an alias; an unknown alias means the model of its parent', async () => {
  const own = scriptedModel(['Mine.', 'Mine again.'])
  const agents = {
    own: { description: 'x', instructions: 'own', model: own },
    short: { description: 'x', instructions: 'short', model: 'quick' },
    inherit: { description: 'x', instructions: 'inherit', model: 'inherit' },
    foreign: { description: 'x', instructions: 'foreign', model: 'sonnet' },
  }
  const reported = model(...Object.keys(agents).map((name) => spawn(name)))
  const agent = createAgent({ model: reported, use: [subagents({ agents, models: { quick: own } })] })
  const run = await agent.run('Go.')
  assert.deepEqual(outputs(run), ['Mine.', 'Mine again.', 'I am inherit.', 'I am foreign.'])
  assert.ok(
    agent
      .describe()
      .notes.includes(
        'The model "sonnet" of the subagent "foreign" is not in "models": it uses the model of its parent.',
      ),
  )
})

test('limits of a definition apply to that subagent only', async () => {
  const agents = { x: { description: 'x', instructions: 'nest x', maxSteps: 1 } }
  const agent = createAgent({ model: model(spawn('x')), use: [subagents({ agents }), guards({ maxSteps: 5 })] })
  const run = await agent.run('Go.')
  assert.equal(run.status, 'completed')
  assert.match(
    String(outputs(run)[0]),
    /was stopped by "guards.maxSteps" before it had finished: Step limit reached: 1\/1\./,
  )
})

test('every subagent gets the option use, including hooks', async () => {
  const fired: string[] = []
  const mine = guard('beforeStep', (ctx) => (fired.push(ctx.state.systemPrompt), ctx), { name: 'mine' })
  const agents = { a: { description: 'x', instructions: 'a' }, b: { description: 'x', instructions: 'b' } }
  await createAgent({ model: model(spawn('a'), spawn('b')), use: [subagents({ agents, use: [mine] })] }).run('Go.')
  assert.deepEqual(fired.toSorted(), ['a', 'b'])
})
