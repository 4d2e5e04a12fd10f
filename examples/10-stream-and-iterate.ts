// Two ways to follow a run. `stream` returns events and continues when you stop reading. `iterate` returns the state
// after each step and pauses when you stop.
import { createAgent, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const search = tool({
  name: 'search',
  description: 'Searches.',
  input: z.object({ word: z.string() }),
  execute: ({ word }, run) => {
    run.progress('half way')
    return `3 hits for ${word}`
  },
})

const script = [
  { text: 'I will search.', toolCalls: [{ name: 'search', args: { word: 'hooks' } }] },
  { text: 'And once more.', toolCalls: [{ name: 'search', args: { word: 'loops' } }] },
  'Hooks and loops, three of each.',
]

// Each run continues the script of its model, so each way gets its own agent.
const streaming = createAgent({ model: scriptedModel(script), use: [search] })
const live = streaming.stream('What is there?')
for await (const event of live) {
  if (event.type === 'text') process.stdout.write(event.delta)
  if (event.type === 'responded') process.stdout.write('\n')
  if (event.type === 'toolProgress') console.log('  ...', event.update)
  if (event.type === 'toolFinished') console.log('  ->', event.execution.output)
}
console.log('streamed:', (await live.run).status)
console.log()

const stepping = createAgent({ model: scriptedModel(script), use: [search] })
const steps = stepping.iterate('What is there?')
for await (const state of steps) {
  console.log(`after step ${state.stepCount}: ${state.messages.length} messages, ${state.usage.toolCalls} tool calls`)
  if (state.stepCount === 2) break // we have seen enough, for now
}
const paused = await steps.run
console.log('iterated:', paused.status)
const finished = await stepping.resume(paused)
console.log('resumed: ', finished.status, '-', finished.text)
