import * as z from 'zod'
import type { AgentState } from '../../core/state/agent-state.ts'
import type { Json } from '../../values/json.ts'
import { getOutputs, structuredOutput } from './structured-output.ts'

// Outputs have the parsed types of their schemas, not the types that the model sends.

declare const state: AgentState

const schemas = {
  invoice: z.object({ cents: z.number(), at: z.string().transform((text) => new Date(text)) }),
  contact: { schema: z.object({ name: z.string() }), description: 'A person.', examples: [{ name: 'Ann' }] },
  plain: { type: 'object', properties: {} },
}
export const capability = structuredOutput({ schemas })

const outputs = await getOutputs(state, schemas)
export const at: Date | undefined = outputs.invoice[0]?.data.at
export const name: string | undefined = outputs.contact[0]?.data.name
export const keptBy: string | undefined = outputs.contact[0]?.name
export const plain: Json | undefined = outputs.plain[0]?.data

// @ts-expect-error There is no such schema.
export const receipt = outputs.receipt
// @ts-expect-error It is a number.
export const cents: string | undefined = outputs.invoice[0]?.data.cents
// @ts-expect-error Schemas are needed.
structuredOutput({})
