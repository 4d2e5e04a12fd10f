// When a tool fails, the model receives the error and continues. When a model or hook throws, `errorPolicy` decides
// between retry, stop and ignore. Without a policy the run fails.
import { createAgent, errorPolicy, explanation, tool, type Capability } from 'hookloop'
import { liveEffects } from 'hookloop/replay'
import { fakeClock, scriptedModel } from 'hookloop/testing'

const disk = tool({
  name: 'disk',
  description: 'Reads the disk.',
  input: { type: 'object' },
  execute: () => {
    throw new Error('EIO: the disk does not answer')
  },
})

/** A model that fails twice before it answers, and then meets a tool that fails. */
const unlucky = () =>
  scriptedModel([
    { error: '503 try again' },
    { error: '503 try again' },
    { toolCalls: [{ name: 'disk' }] },
    'The disk is broken.',
  ])

const policies: readonly [string, ...Capability[]][] = [
  ['no policy'],
  ['strict', errorPolicy('strict')],
  ['patient', errorPolicy('patient')],
  ['two at most', errorPolicy({ maxRetries: 1 })],
]

for (const [name, ...policy] of policies) {
  const clock = fakeClock({ auto: true }) // the pauses between attempts take no time here
  const agent = createAgent({ model: unlucky(), use: [disk, ...policy] })
  const run = await agent.run('What is on the disk?', { effects: liveEffects({ clock }) })
  const { decided, errors, wayOn } = explanation(run)
  console.log(`${name}: ${run.status} by ${decided.by} (errors: ${errors.length}, waited: ${clock.now()} ms)`)
  console.log(run.status === 'completed' ? `  it says: ${run.text}` : `  ${decided.message}\n  to continue: ${wayOn}`)
}
