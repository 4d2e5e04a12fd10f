// Models fail. `retry` asks again when that may help, and waits as long as the provider wants; `fallback` asks another
// model; `cacheResponses` does not ask twice. Each is a hook around the model call, and the ledger has every attempt.
import { AgentError, cacheResponses, createAgent, explanation, fallback, retry } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

// Failures of real providers come in this form: a code that says what kind it is, and a value with what may help.
const overloaded = { error: new AgentError('MODEL_OVERLOADED', 'main answered 529: Overloaded.') }
const limited = (retryAfterMs: number) => ({
  error: new AgentError('MODEL_RATE_LIMITED', `main answered 429: Wait ${retryAfterMs} ms.`, {
    value: { retryAfterMs },
  }),
})
const filtered = { error: new AgentError('MODEL_CONTENT_FILTERED', 'main answered 400: No.') }

const main = scriptedModel([overloaded, limited(20), 'Blue, by day.', limited(3_600_000), filtered], {
  modelId: 'main',
})
const backup = scriptedModel(['Dark, by night.'], { modelId: 'backup' })

const agent = createAgent({
  model: main,
  use: [retry({ attempts: 3, backoffMs: 10 }), fallback([backup]), cacheResponses()],
})

const questions = [
  'What colour is the sky?', // two failures that pass
  'And at night?', // an hour is too long to wait, so another model is asked
  'What colour is the sky?', // known: nobody is asked, and it costs nothing
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
