// Two subagents inspect a repository in parallel for a third agent. One of them is defined in a Markdown file.
// A guard of the parent judges their calls, and the ledger shows who did what.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, explain, guard, tool } from 'hookloop'
import { readAgents, subagents } from 'hookloop/subagents'
import { scriptedModel } from 'hookloop/testing'

const folder = await mkdtemp(join(tmpdir(), 'agents-'))
await writeFile(
  join(folder, 'historian.md'),
  `---
name: historian
description: Knows what happened when: reads the log.
tools: run
---
You read the log.
`,
)

const run = tool({
  name: 'run',
  description: 'Runs a command.',
  input: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  execute: (args) => `ran ${JSON.stringify(args)}`,
})
const onlyReads = guard(
  'beforeToolUse',
  (ctx) => (/push|rm/.test(JSON.stringify(ctx.toolCall.args)) ? ctx.block('This repository is read-only.') : ctx),
  { name: 'onlyReads', tool: 'run' },
)

const model = scriptedModel(({ system, messages }) => {
  const isFirst = messages.length === 1
  if (system.startsWith('You read the log')) {
    return isFirst ? { toolCalls: [{ name: 'run', args: { command: 'git log' } }] } : 'It broke on Tuesday.'
  }
  if (system.startsWith('You find')) {
    return isFirst ? { toolCalls: [{ name: 'run', args: { command: 'rm -rf build' } }] } : 'I may not delete the build.'
  }
  if (!isFirst) return 'It broke on Tuesday; the build was not deleted.'
  const ask = (subagent: string, prompt: string) => ({ name: 'spawn_subagent', args: { subagent, prompt } })
  return { toolCalls: [ask('historian', 'When did it break?'), ask('scout', 'Make room.')] }
})

const agent = createAgent({
  model,
  use: [
    run,
    onlyReads,
    subagents({
      agents: {
        ...readAgents(folder).agents,
        scout: { description: 'Finds things.', instructions: 'You find things.', maxSteps: 5 },
      },
    }),
  ],
})

const live = agent.stream('Why does it not build?')
for await (const event of live) {
  if (event.type !== 'subagent' || event.event.type !== 'toolFinished') continue
  const who = event.path.map(({ agent: name }) => name).join(' > ')
  console.log(`${who}: ${event.event.call.name} ${event.event.execution.status}`)
}
const ended = await live.run
console.log(ended.text)
console.log(explain(ended))
await rm(folder, { recursive: true })
