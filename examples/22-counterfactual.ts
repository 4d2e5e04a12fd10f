// What would other hooks have decided? A recorded run is judged again with changed hooks: no model, no tool.
// The report lists the decisions that differ, and where a live run would diverge from the recording.
import { createAgent, guard, hook, tool } from 'hookloop'
import { diffRuns, formatDiff, formatReplay, memoryRecording, recordEffects, replay } from 'hookloop/replay'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => {
    console.log(`  (running ${command})`)
    return 'ok'
  },
})

const run = (command: string) => ({ toolCalls: [{ name: 'shell', args: { command } }] })
const commands = ['npm test', 'git commit -am wip', 'git push --force']
const script = [...commands.map(run), 'Pushed.']
const agent = createAgent({ model: scriptedModel(script), use: [shell] })

console.log('the recorded run')
const recording = memoryRecording()
const was = await agent.run('Ship it.', { effects: recordEffects(recording) })

// A policy under discussion: the second hook uses what the first one has counted

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

console.log('\na real run with the policy')
const other = createAgent({ model: scriptedModel(script), use: [shell, count, review] })
console.log(formatDiff(diffRuns(was, await other.run('Ship it.'))))
