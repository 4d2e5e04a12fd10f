// A project with Claude Code hooks keeps them: `claudeHooks` runs the same scripts for the same events, under the
// tool names that they expect. `claudeCommands` does the same for `/name` commands.
import { fileURLToPath } from 'node:url'
import { createAgent, tool } from 'hookloop'
import { claudeCommands, claudeHooks } from 'hookloop/hook-files'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const bash = tool({
  name: 'bash',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `(${command} ran)`,
})

const readFile = tool({
  name: 'read_file',
  description: 'Reads a file.',
  input: z.object({ path: z.string() }),
  execute: ({ path }) => `(the text of ${path})`,
})

const place = {
  dir: fileURLToPath(new URL('claude-project', import.meta.url)),
  home: false, // nothing of yours, so that everybody sees the same
} as const

const agent = createAgent({
  model: scriptedModel([
    { toolCalls: [{ name: 'bash', args: { command: 'git push --force' } }] },
    { toolCalls: [{ name: 'read_file', args: { path: '.env' } }] },
    { toolCalls: [{ name: 'read_file', args: { path: 'README.md' } }] },
    'Done.',
    { toolCalls: [{ name: 'bash', args: { command: 'npm test' } }] },
    'Done, and the tests pass.',
  ]),
  use: [
    bash,
    readFile,
    claudeCommands(place),
    claudeHooks({ ...place, trust: 'all' }), // you have read them; otherwise: hookloop trust
  ],
})

const live = agent.stream('/ship 1.2') // .claude/commands/ship.md
for await (const event of live) {
  if (event.type === 'toolFinished') {
    const { call, execution } = event
    console.log(`${call.name} ${JSON.stringify(call.args)}\n  ${execution.status}: ${JSON.stringify(execution.output)}`)
  }
}
const { text, state } = await live.run
console.log(`\nanswer: ${text}`)
console.log('\nmessages from the command and from hooks:')
for (const { role, content } of state.messages) {
  const [part] = content
  if (role === 'user' && part?.type === 'text') console.log(part.text)
}
