// The model fills in forms that the application knows by name. Data that does not match is returned with the problem;
// data that matches is stored in the state and read with the types of the schemas.
import { createAgent, type JsonObject } from 'hookloop'
import { getOutputs, structuredOutput } from 'hookloop/structured-output'
import { scriptedModel, type ScriptedTurn } from 'hookloop/testing'
import * as z from 'zod'

const schemas = {
  invoice: {
    schema: z.object({
      supplier: z.string(),
      cents: z.int().positive(),
      due: z.iso.date().transform((day) => new Date(day)),
      currency: z.string().default('EUR'),
    }),
    description: 'A bill that we have to pay.',
    examples: [{ supplier: 'Paper & Sons', cents: 1250, due: '2027-01-31' }],
  },
  contact: z.object({ name: z.string(), email: z.email() }),
}

const fill = (form: string, args: JsonObject) => ({ name: `structured_output_${form}`, args })
const invoice = (data: JsonObject, store_as: string) => fill('invoice', { data, store_as })
const contact = (email: string) => fill('contact', { data: { name: 'Ann', email } })
const calls = (...toolCalls: readonly { name: string; args: JsonObject }[]): ScriptedTurn => ({ toolCalls })

const agent = createAgent({
  model: scriptedModel([
    calls(
      invoice({ supplier: 'Paper & Sons', cents: 12.5, due: '2027-01-31' }, 'paper'),
      invoice({ supplier: 'Ink Ltd', cents: 990, due: '2027-02-15', currency: 'GBP' }, 'ink'),
    ),
    calls(invoice({ supplier: 'Paper & Sons', cents: 1250, due: '2027-01-31' }, 'paper'), contact('ann at paper')),
    calls(contact('ann@paper')),
    calls(contact('ann@paper.example')), // too late: one retry is all it has
    'Two invoices are filed. I could not read the address of the contact.',
  ]),
  use: [structuredOutput({ schemas, maxRetries: 1 })],
})

const run = await agent.run('File what is in this mail: …')
for (const { toolCalls, toolExecutions } of run.state.execution?.steps ?? []) {
  for (const [i, { status, output }] of toolExecutions.entries()) {
    console.log(`${toolCalls[i]!.name.slice('structured_output_'.length).padEnd(8)} ${status.padEnd(8)}`, output)
  }
}

console.log(`\n${run.text}`)
const outputs = await getOutputs(run.state, schemas)
for (const { name, data } of outputs.invoice) {
  console.log(
    `${name}: ${data.cents / 100} ${data.currency} to ${data.supplier} by ${data.due.toISOString().slice(0, 10)}`,
  )
}
console.log(`contacts: ${outputs.contact.length}`)
