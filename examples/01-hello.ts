// The smallest agent with a tool: the model asks for it, the loop runs it, the model answers.
// `explain(run)` says why the run ended; that is true of every run, however it ends.
import { createAgent, explain, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const clock = tool({
  name: 'clock',
  description: 'The time in a city.',
  input: z.object({ city: z.enum(['Lisbon', 'Oslo']) }),
  execute: ({ city }) => ({ Lisbon: '14:00', Oslo: '15:00' })[city],
})

const agent = createAgent({
  // In place of a real model: it says these two things, one after the other.
  model: scriptedModel([
    { text: 'Let me look.', toolCalls: [{ name: 'clock', args: { city: 'Oslo' } }] },
    'It is 15:00 in Oslo.',
  ]),
  instructions: 'You tell the time.',
  use: [clock],
})

const run = await agent.run('What time is it in Oslo?')

console.log(run.text)
console.log()
console.log(explain(run))
