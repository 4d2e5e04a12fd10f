// A project that has hooks for Claude Code keeps them: `claudeHooks` runs the same scripts for the same events. The tools
// have other names here, and the scripts need not know.
import { fileURLToPath } from 'node:url'
import { createAgent, tool } from 'hookloop'
import { claudeHooks } from 'hookloop/config'
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
    claudeHooks({
      dir: fileURLToPath(new URL('claude-project', import.meta.url)),
      home: false, // nothing of yours, so that everybody sees the same
      trust: 'all', // you have read them; otherwise: hookloop trust
    }),
  ],
})

const live = agent.stream('Ship it.')
for await (const event of live) {
  if (event.type === 'toolFinished') {
    const { call, execution } = event
    console.log(`${call.name} ${JSON.stringify(call.args)}\n  ${execution.status}: ${JSON.stringify(execution.output)}`)
  }
}
const { text, state } = await live.run
console.log(`\nin the end: ${text}`)
console.log('\nwhat hooks told the model:')
for (const { role, content } of state.messages) {
  const [part] = content
  if (role === 'user' && part?.type === 'text' && part.text !== 'Ship it.') console.log(part.text)
}
