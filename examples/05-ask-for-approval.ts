// A guard asks and the run suspends. The suspended run is JSON, so another process can resume it later.
// Calls that have ended do not run again, and the answer is valid for these arguments only.
import { approval, createAgent, guard, tool, type SavedRun } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const build = tool({
  name: 'build',
  description: 'Builds the app.',
  input: z.object({}),
  execute: () => {
    console.log('  (building)')
    return 'ok'
  },
})

const deploy = tool({
  name: 'deploy',
  description: 'Deploys the app.',
  input: z.object({ to: z.enum(['staging', 'production']) }),
  execute: ({ to }) => {
    console.log(`  (deploying to ${to})`)
    return `live on ${to}`
  },
})

const agent = createAgent({
  model: scriptedModel([
    { toolCalls: [{ name: 'build' }, { name: 'deploy', args: { to: 'production' } }] },
    'The app is deployed.',
  ]),
  use: [
    build,
    deploy,
    guard('beforeToolUse', (ctx) => ctx.ask(`Deploy to ${ctx.toolCall.args.to}?`), { name: 'careful', tool: deploy }),
    approval('suspend'),
  ],
})

const run = await agent.run('Ship it.')
if (run.status !== 'suspended') throw new Error(`expected a question, got ${run.status}`)
console.log(
  run.status,
  run.pending.map(({ message, by }) => `${by} asks: ${message}`),
)

const saved = JSON.stringify(run)
console.log(`saved as ${saved.length} characters of JSON`)

// Later, in another process: the approver allows it, but for staging. Guards judge the new arguments too.
const answers = Object.fromEntries(run.pending.map(({ id }) => [id, { allow: { to: 'staging' } }]))
const resumed = await agent.resume(JSON.parse(saved) as SavedRun, { answers })
console.log(resumed.status, resumed.text)
