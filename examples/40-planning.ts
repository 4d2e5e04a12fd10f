// A planner reads and makes a plan, and cannot do anything else, whatever the model wants. The plan goes into the
// definition of an agent, which the model writes down once a person has said yes.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { approval, createAgent, tool } from 'hookloop'
import { agentDefinitions, planning } from 'hookloop/subagents'
import { scriptedModel } from 'hookloop/testing'

const writeTo = await mkdtemp(join(tmpdir(), 'agents-'))
const file = (name: string, does: string) =>
  tool({ name, description: does, input: { type: 'object' }, execute: () => `${name}: done` })

const model = scriptedModel(({ system, messages }) => {
  const last = messages.at(-1)
  if (system.startsWith('You make plans')) {
    if (last?.role === 'tool') return '1. Read the tests.\n2. Mend the parser.'
    return { toolCalls: [{ name: 'read_file' }, { name: 'write_file' }] }
  }
  switch (messages.length) {
    case 1:
      return { toolCalls: [{ name: 'plan_with_subagent', args: { specification: 'Mend the parser.' } }] }
    case 3: {
      const part = last?.content[0]
      const plan = part?.type === 'tool-result' ? (part.output as string) : ''
      const definition = { name: 'mender', description: 'Mends the parser.', instructions: plan, tools: [] }
      return { toolCalls: [{ name: 'write_agent', args: definition }] }
    }
    default:
      return 'There is a mender now.'
  }
})

const agent = createAgent({
  model,
  use: [
    file('read_file', 'Reads a file.'),
    file('write_file', 'Writes a file.'),
    planning(),
    agentDefinitions({ writeTo }),
    approval((question) => {
      console.log(`${question.message} Yes.`)
      return 'allow'
    }),
  ],
})

const run = await agent.run('Mend the parser.')
for (const { path, tool: name, message } of run.ledger) {
  if (path !== undefined && message !== undefined && name !== undefined) console.log(`planner: ${message}`)
}
console.log(await readFile(join(writeTo, 'mender.md'), 'utf8'))
console.log(run.text)
await rm(writeTo, { recursive: true })
