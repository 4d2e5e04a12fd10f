// The model notices a wrong path and goes back to a checkpoint. Everything after it leaves the conversation, and its
// guidance replaces it; the steps still count.
import { createAgent, tool } from 'hookloop'
import { getRewinds, retrospective } from 'hookloop/stores'
import { scriptedModel } from 'hookloop/testing'

const search = tool({
  name: 'search',
  description: 'Searches the web.',
  input: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  execute: ({ query }) => (query === 'jaguar animal' ? 'A large cat.' : 'Three pages about cars. '.repeat(20)),
})

const searching = (query: string) => ({ toolCalls: [{ name: 'search', args: { query } }] })
const guidance = 'Plain "jaguar" finds cars only. Search for "jaguar animal".'

const agent = createAgent({
  model: scriptedModel([
    searching('jaguar'),
    searching('jaguar weight'),
    { toolCalls: [{ name: 'execution_retrospective', args: { checkpoint_id: 0, guidance } }] },
    searching('jaguar animal'),
    'A jaguar is a large cat.',
  ]),
  use: [search, retrospective()],
})

const run = await agent.run('What is a jaguar?')
for (const { role, content } of run.state.messages) {
  for (const part of content) {
    if (part.type === 'text') console.log(`${role}: ${part.text}`)
    if (part.type === 'tool-call') console.log(`${role} calls ${part.toolName} ${JSON.stringify(part.input)}`)
    if (part.type === 'tool-result') console.log(`${role}: ${JSON.stringify(part.output)}`)
  }
}
console.log(`\n${getRewinds(run.state)} rewind, and still ${run.state.stepCount} steps`)
