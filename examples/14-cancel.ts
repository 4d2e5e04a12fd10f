// Cancelling a run: the running tool gets an abort signal, calls that have not started never start, and the run ends
// with a record. An interrupted call is `outcomeUnknown`: it may have had an effect.
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent, explain, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const copy = tool({
  name: 'copy',
  description: 'Copies a lot of files.',
  input: z.object({ from: z.string() }),
  async execute({ from }, run) {
    for (let percent = 0; percent < 100; percent += 10) {
      run.progress(`${from}: ${percent} %`)
      await sleep(20, undefined, { signal: run.signal }) // rejects when the run is cancelled
    }
    return 'copied'
  },
})

const agent = createAgent({
  model: scriptedModel([
    {
      toolCalls: [
        { name: 'copy', args: { from: '/photos' } },
        { name: 'copy', args: { from: '/music' } },
      ],
    },
    'All copied.',
  ]),
  use: [copy],
})

const cancel = new AbortController()
const live = agent.stream('Copy everything.', { signal: cancel.signal })
for await (const event of live) {
  if (event.type !== 'toolProgress') continue
  console.log(event.update)
  if (event.update === '/photos: 30 %') cancel.abort()
}

const run = await live.run
for (const [i, { status, output }] of run.state.lastStep!.toolExecutions.entries()) {
  console.log(`call ${i + 1}: ${status}`, output)
}
console.log(explain(run))
