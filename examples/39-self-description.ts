// The model asks what it consists of, including the guards that apply. Secrets are removed from the answer.
import { createAgent, guard, guards, selfDescription, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

process.env['SEARCH_API_KEY'] = 'correct-horse-battery'

const search = tool({
  name: 'search',
  description: `Searches with the key ${process.env['SEARCH_API_KEY']}.`, // a mistake that happens
  input: { type: 'object' },
  execute: () => 'nothing',
})

const agent = createAgent({
  name: 'librarian',
  model: scriptedModel([{ toolCalls: [{ name: 'describe_self' }] }, 'I can search, within ten steps.']),
  use: [
    search,
    selfDescription(),
    guards({ maxSteps: 10 }),
    guard('beforeToolUse', (ctx) => (ctx.spent.toolCalls > 5 ? ctx.block('Enough.') : ctx), {
      name: 'fewSearches',
      tool: search,
    }),
  ],
})

for await (const event of agent.stream('What can you do?')) {
  if (event.type === 'toolFinished') console.log(JSON.stringify(event.execution.output, null, 2))
  if (event.type === 'responded' && event.text !== '') console.log(event.text)
}
