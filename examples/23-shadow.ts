// A hook in shadow mode sees every event, and its decisions are recorded, not applied. `explain` lists them separately.
// Use it to try a policy on real runs before it blocks anything.
import { createAgent, explain, explanation, guard, shadow, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'

const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  input: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
})

// In force: the agreed policy

const noForce = guard(
  'beforeToolUse',
  (ctx) => (ctx.toolCall.args.command.includes('--force') ? ctx.block('Never force.') : ctx),
  { name: 'no-force', tool: shell },
)

// In shadow mode: a stricter and slower policy. The run does not wait for it

const noPush = guard(
  'beforeToolUse',
  async (ctx) => {
    await delay(50)
    return ctx.toolCall.args.command.startsWith('git push') ? ctx.block('Agents never push.') : ctx
  },
  { name: 'no-push', tool: shell },
)

const agent = createAgent({
  model: scriptedModel(({ messages }) => {
    const commands = ['git push', 'git push --force', 'git status']
    const command = commands[messages.filter(({ role }) => role === 'assistant').length]
    return command === undefined ? 'Done.' : { toolCalls: [{ name: 'shell', args: { command } }] }
  }),
  use: [shell, noForce, shadow(noPush)],
})

const run = await agent.run('Publish.')
console.log(explain(run))

const { blocked, shadows } = explanation(run)
const also = shadows.filter(({ step }) => blocked.some((each) => each.step === step))
console.log(
  `\nin force: ${blocked.length} blocked. no-push would block ${shadows.length}, of which ${also.length} are blocked anyway.`,
)
