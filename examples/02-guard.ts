// A guard decides whether a tool runs. If it blocks, the tool is not run and the model receives the reason.
// It is registered with the tool itself, so the arguments are typed and valid.
import { createAgent, explain, guard, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const executed: string[] = []

const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => {
    executed.push(command)
    return 'done'
  },
})

const neverPush = guard(
  'beforeToolUse',
  (ctx) => (/\bgit\s+push\b/.test(ctx.toolCall.args.command) ? ctx.block('Agents never push.') : ctx),
  { name: 'never-push', tool: shell },
)

const agent = createAgent({
  model: scriptedModel([
    { toolCalls: [{ name: 'shell', args: { command: 'git commit -m "repair"' } }] },
    { toolCalls: [{ name: 'shell', args: { command: 'git push --force' } }] },
    'It is committed. Pushing is up to you.',
  ]),
  use: [shell, neverPush],
})

const run = await agent.run('Commit and push.')

console.log('executed:', executed)
console.log(explain(run))
