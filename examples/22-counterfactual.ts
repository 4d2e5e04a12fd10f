// What would other hooks have done? A recorded run is judged again, event by event, with the hooks changed: no model, no
// tool. The report says which decisions would have differed, and where a live run would have left the record.
import { createAgent, guard, hook, tool } from 'hookloop'
import { diffRuns, formatDiff, formatReplay, memoryRecording, recordEffects, replay } from 'hookloop/replay'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => {
    console.log(`  (really running ${command})`)
    return 'ok'
  },
})

const run = (command: string) => ({ toolCalls: [{ name: 'shell', args: { command } }] })
const commands = ['npm test', 'git commit -am wip', 'git push --force']
const script = [...commands.map(run), 'Pushed.']
const agent = createAgent({ model: scriptedModel(script), use: [shell] })

console.log('the run that was recorded')
const recording = memoryRecording()
const was = await agent.run('Ship it.', { effects: recordEffects(recording) })

// ── a policy somebody thinks about: two hooks, of which the second knows only what the first has counted

const count = hook(
  'afterToolUse',
  (ctx) => ctx.withState((state) => state.withMetadata('calls', Number(state.metadata['calls'] ?? 0) + 1)),
  { name: 'count' },
)
const review = guard(
  'beforeToolUse',
  (ctx) => (ctx.state.metadata['calls'] === 2 ? ctx.block('Every third call is reviewed.') : ctx),
  { name: 'review' },
)

console.log('\nwith the policy')
const report = await replay(recording, { agent, input: 'Ship it.', hooks: [count, review] })
console.log(formatReplay(report))

console.log('\nand if it is really run with it')
const other = createAgent({ model: scriptedModel(script), use: [shell, count, review] })
console.log(formatDiff(diffRuns(was, await other.run('Ship it.'))))
