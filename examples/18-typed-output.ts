// With `output: schema` a run is completed only by an answer that matches, and `run.output` has the type of the schema.
// Other answers are returned to the model with the problem; after the last try the run fails.
import { createAgent } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const Invoice = z.object({
  supplier: z.string(),
  lines: z.array(z.object({ what: z.string(), cents: z.int().positive() })),
})

// The provider of this model does not support schemas, so the model gets a tool for the answer.
const answer = (cents: number) => ({
  toolCalls: [{ name: 'final_answer', args: { supplier: 'Paper & Sons', lines: [{ what: 'envelopes', cents }] } }],
})

const input = 'Paper & Sons, envelopes, 12.50'
const agent = createAgent({
  model: scriptedModel([answer(12.5), 'It is 1250 cents.', answer(1250)]),
  instructions: 'Read the invoice.',
  output: Invoice,
})

const run = await agent.run(input)
for (const { text, toolExecutions } of run.state.execution?.steps ?? []) {
  console.log('model:', text || '(calls the tool)')
  for (const { status, output } of toolExecutions) console.log('  ->', status, output)
}
if (run.status === 'completed') {
  const total = run.output.lines.reduce((sum, { cents }) => sum + cents, 0) // typed: `lines` is an array, `cents` a number
  console.log(`${run.output.supplier}: ${total} cents`)
}
console.log()

const stubborn = createAgent({
  model: scriptedModel(() => '{"supplier": "Paper & Sons"}'),
  output: Invoice,
  outputOptions: { strategy: 'text', maxRetries: 1 },
})
const failed = await stubborn.run(input)
if (failed.status === 'failed') {
  console.log(failed.error.code, failed.error.message)
  console.log(failed.error.value) // every answer that was tried, and what was wrong with it
}
