// An `around…` hook wraps the model call: `next()` makes it, and can be called again or with another model.
// Other hooks and tools do not notice; the ledger records every attempt.
import { createAgent, hook } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

const overloaded = { error: '529 overloaded' }
const replies = [overloaded, 'First answer, at the second attempt.', overloaded, overloaded, overloaded]
const best = scriptedModel(() => replies.shift()!, { modelId: 'best' }) // a function: the replies of all runs together
const backup = scriptedModel(['Second answer, from the backup.'], { modelId: 'backup' })

const retry = hook(
  'aroundInference',
  async (ctx, next) => {
    for (let attempt = 1; attempt <= 2; attempt++) {
      try {
        return await next()
      } catch {
        ctx.signal.throwIfAborted() // a cancelled run is not retried
      }
    }
    return next()
  },
  { name: 'retry' },
)

// The around hook with the higher priority is the outer one: it sees the failure after the last retry.
const fallback = hook(
  'aroundInference',
  async (_ctx, next) => {
    try {
      return await next()
    } catch {
      return next({ model: backup })
    }
  },
  { name: 'fallback', priority: 10 },
)

const agent = createAgent({ model: best, use: [retry, fallback] })

for (const question of ['One?', 'Two?']) {
  const run = await agent.run(question)
  console.log(question, run.status, '-', run.text)
  for (const { hook: name, decision, error } of run.ledger) {
    if (name === 'retry' || name === 'fallback') console.log('  ', name, decision ?? error ?? 'called once')
  }
}
console.log(`calls: ${best.requests.length} to best, ${backup.requests.length} to backup`)
