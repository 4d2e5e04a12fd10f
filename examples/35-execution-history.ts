// A summary of each execution of a conversation, stored in its state, also for stopped ones.
import { createAgent, guards, tool } from 'hookloop'
import { executionHistory, getExecutionHistory } from 'hookloop/stores'
import { scriptedModel } from 'hookloop/testing'

const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'nothing here' })
const looking = { toolCalls: [{ name: 'look' }] }

const agent = createAgent({
  model: scriptedModel([looking, 'It is not here.', looking, looking, looking]),
  use: [look, guards({ maxSteps: 3 }), executionHistory()],
})

const first = await agent.run('Where is it?')
const second = await agent.run('Look again.', { from: first })

for (const { number, status, by, message, steps, usage } of getExecutionHistory(second.state)) {
  const tokens = usage.inputTokens + usage.outputTokens
  console.log(`${number}. ${status} after ${steps} steps and ${tokens} tokens, by ${by}: ${message}`)
}
