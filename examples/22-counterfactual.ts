// What would other hooks have decided? A run of a session is judged again with changed hooks: no model, no tool.
// The report lists the decisions that differ, and where a live run would diverge from the record.
import { createAgent, guard, hook, tool } from 'hookloop'
import { diffRuns, formatDiff, formatReplay, replay } from 'hookloop/replay'
import { memoryStore } from 'hookloop/sessions'
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
const store = memoryStore()
const agent = createAgent({ model: scriptedModel(script), use: [shell], store })

console.log('the recorded run')
const was = await agent.run('Ship it.', { session: 'ship' })

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
const report = await replay((await store.read('ship'))!, { agent, hooks: [count, review] })
console.log(formatReplay(report))

console.log('\na real run with the policy')
const other = createAgent({ model: scriptedModel(script), use: [shell, count, review] })
console.log(formatDiff(diffRuns(was, await other.run('Ship it.'))))
