// `retry` calls the model again after a temporary failure, `fallback` calls another model, `cacheResponses` reuses
// answers. Each is a hook around the model call, and the ledger has every attempt.
import { AgentError, cacheResponses, createAgent, explanation, fallback, retry } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

// Failures of real providers have this form: a code for the kind of failure, and a value with details.
const overloaded = { error: new AgentError('MODEL_OVERLOADED', 'main answered 529: Overloaded.') }
const limited = (retryAfterMs: number) => ({
  error: new AgentError('MODEL_RATE_LIMITED', `main answered 429: Wait ${retryAfterMs} ms.`, {
    value: { retryAfterMs },
  }),
})
const filtered = { error: new AgentError('MODEL_CONTENT_FILTERED', 'main answered 400: No.') }

const replies = [overloaded, limited(20), 'Blue, by day.', limited(3_600_000), filtered]
const main = scriptedModel(() => replies.shift()!, { modelId: 'main' }) // a function: the replies of all runs together
const backup = scriptedModel(['Dark, by night.'], { modelId: 'backup' })

const agent = createAgent({
  model: main,
  use: [retry({ maxRetries: 2, backoffMs: 10 }), fallback([backup]), cacheResponses()],
})

const questions = [
  'What color is the sky?', // two failures that pass
  'And at night?', // an hour is too long to wait, so another model is asked
  'What color is the sky?', // cached: no model is called, and it costs nothing
  'Something forbidden?', // a refusal is an answer: asking again, or elsewhere, would be begging
]

for (const question of questions) {
  const run = await agent.run(question)
  const { inputTokens, outputTokens } = run.state.usage
  console.log(question)
  for (const { message } of explanation(run).failedAttempts) console.log(`    ${message}`)
  console.log(`  ${run.status === 'failed' ? run.error.code : run.text} (${inputTokens + outputTokens} tokens)`)
}
console.log(`calls: ${main.requests.length} to main, ${backup.requests.length} to backup`)
