// A planner reads and writes a plan, and can do nothing else. The plan becomes the definition of an agent, which the
// model may write after an approval.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentTool, approval, createAgent, tool } from 'hookloop'
import { agentDefinitions } from 'hookloop/subagents'
import { scriptedModel } from 'hookloop/testing'

const writeTo = await mkdtemp(join(tmpdir(), 'agents-'))
const file = (name: string, does: string) =>
  tool({ name, description: does, input: { type: 'object' }, execute: () => `${name}: done` })

const planner = { instructions: 'You make plans. Change nothing.', tools: ['read_file'], limits: { maxSteps: 10 } }
const plan = agentTool({
  name: 'plan_with_subagent',
  description: 'Asks a planner for a plan. It can read but changes nothing.',
  input: { type: 'object', properties: { specification: { type: 'string' } }, required: ['specification'] },
  to: ({ specification }) => ({ name: 'planner', to: planner, input: specification as string }),
})

const model = scriptedModel(({ system, messages }) => {
  const last = messages.at(-1)
  if (system.startsWith('You make plans')) {
    if (last?.role === 'tool') return '1. Read the tests.\n2. Fix the parser.'
    return { toolCalls: [{ name: 'read_file' }, { name: 'write_file' }] }
  }
  switch (messages.length) {
    case 1:
      return { toolCalls: [{ name: 'plan_with_subagent', args: { specification: 'Fix the parser.' } }] }
    case 3: {
      const part = last?.content[0]
      const plan = part?.type === 'tool-result' ? (part.output as string) : ''
      const definition = { name: 'fixer', description: 'Fixes the parser.', instructions: plan, tools: [] }
      return { toolCalls: [{ name: 'write_agent', args: definition }] }
    }
    default:
      return 'The agent "fixer" is defined.'
  }
})

const agent = createAgent({
  model,
  use: [
    file('read_file', 'Reads a file.'),
    file('write_file', 'Writes a file.'),
    plan,
    agentDefinitions({ writeTo }),
    approval((question) => {
      console.log(`${question.message} Yes.`)
      return 'allow'
    }),
  ],
})

const run = await agent.run('Fix the parser.')
for (const { path, tool: name, message } of run.ledger) {
  if (path !== undefined && message !== undefined && name !== undefined) console.log(`planner: ${message}`)
}
console.log(await readFile(join(writeTo, 'fixer.md'), 'utf8'))
console.log(run.text)
await rm(writeTo, { recursive: true })
