// An agent with one tool. The model calls the tool, Hookloop runs it, and the model answers.
// `explain(run)` says why a run ended, for every status.
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
  // Instead of a real model: it answers from this script.
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
