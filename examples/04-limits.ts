// Limits are guards, checked before the call that would exceed them. Every agent has limits, and `describe` lists them.
// This model would never stop; each run ends at another limit.
import { createAgent, explanation, guards, tool, type Limits } from 'hookloop'
import { liveEffects } from 'hookloop/replay'
import { fakeClock, scriptedModel } from 'hookloop/testing'

const clock = fakeClock()

const look = tool({
  name: 'look',
  description: 'Looks once more.',
  input: { type: 'object' },
  execute: () => clock.advance(40_000).then(() => 'nothing new'), // each look takes 40 seconds of a clock we hold
})

const restless = scriptedModel(() => ({ toolCalls: [{ name: 'look' }] }), {
  usage: { inputTokens: 900, outputTokens: 100, costUsd: 0.02 },
})

const limits: readonly Limits[] = [
  {}, // the defaults: 50 steps, 2,000,000 tokens, 30 minutes
  { maxSteps: 3 },
  { maxTokens: 5_000 },
  { maxCost: 0.1 },
  { maxToolCalls: 4 },
  { maxTimeMs: 60_000 },
]

for (const limit of limits) {
  const agent = createAgent({ model: restless, use: [look, guards(limit)] })
  const run = await agent.run('Tell me when something changes.', { effects: liveEffects({ clock }) })
  const { decided, spent } = explanation(run)
  console.log(...agent.describe().notes)
  console.log(`  ${run.status} by ${decided.by} after ${spent.steps} steps: ${decided.message}`)
}
