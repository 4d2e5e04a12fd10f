import type { LanguageModelV4 } from '@ai-sdk/provider'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import * as z from 'zod'
import type { Agent } from './core/agent/agent.ts'
import type { Run } from './core/agent/run.ts'
import { createAgent } from './create-agent.ts'
import type { LanguageModel, ModelSource } from './core/state/inference.ts'
import type { JsonObject } from './values/json.ts'

// Compile-time tests: the output of an agent has the type of its schema. This file never runs.

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Holds<T extends true> = T

declare const model: LanguageModel
declare const ofAiSdk: LanguageModelV4
declare const inAnyForm: ModelSource

type Weather = { city: string; degrees: number }

// ── outputs

const plain = createAgent({ model })
const withZod = createAgent({ model, output: z.object({ city: z.string(), degrees: z.number() }) })
const withArkType = createAgent({ model, output: type({ city: 'string', degrees: 'number' }) })
const withValibot = createAgent({
  model,
  output: toStandardJsonSchema(v.object({ city: v.string(), degrees: v.number() })),
})
const withJsonSchema = createAgent({ model, output: { type: 'object', properties: { city: { type: 'string' } } } })
const withList = createAgent({ model, output: z.array(z.string()) })
const withDate = createAgent({ model, output: z.object({ at: z.iso.datetime().transform((text) => new Date(text)) }) })
const withDefault = createAgent({ model, output: z.object({ n: z.number().default(1) }) })
const withOptions = createAgent({
  model,
  output: z.string(),
  outputOptions: { strategy: 'tool', maxRetries: 1, name: 'a' },
})

export type Outputs = [
  Holds<Same<typeof plain, Agent>>,
  Holds<Same<Extract<Run, { status: 'completed' }>['output'], string>>,
  Holds<Same<typeof withZod, Agent<Weather>>>,
  Holds<Same<typeof withArkType, Agent<Weather>>>,
  Holds<Same<typeof withValibot, Agent<Weather>>>,
  Holds<Same<typeof withJsonSchema, Agent<JsonObject>>>,
  Holds<Same<typeof withList, Agent<string[]>>>,
  Holds<Same<typeof withDate, Agent<{ at: Date }>>>,
  Holds<Same<typeof withDefault, Agent<{ n: number }>>>,
  Holds<Same<typeof withOptions, Agent>>,
]

const more = withZod.with()
const streamed = withZod.stream('go')
const stepwise = withZod.iterate('go')
export type Kept = [
  Holds<Same<typeof more, Agent<Weather>>>,
  Holds<Same<Awaited<ReturnType<typeof withZod.run>>, Run<Weather>>>,
  Holds<Same<Awaited<ReturnType<typeof withZod.resume>>, Run<Weather>>>,
  Holds<Same<Awaited<(typeof streamed)['run']>, Run<Weather>>>,
  Holds<Same<Awaited<(typeof stepwise)['run']>, Run<Weather>>>,
]

// ── a run

export async function outputs(): Promise<void> {
  const run = await withZod.run('go')
  // @ts-expect-error -- a run with an unknown status has no output
  void run.output
  if (run.status === 'completed') {
    run.output satisfies Weather
    // @ts-expect-error -- the output has only the fields of the schema
    void run.output.wind
  } else {
    // @ts-expect-error -- a run that is not completed has no output
    void run.output
  }
  if (run.status === 'failed') run.error.code satisfies string
  const next = await plain.run('and now', { from: run }) // a conversation may continue with another agent
  if (next.status === 'completed') next.output satisfies string
}

// ── models

createAgent({ model: 'anthropic/claude-sonnet-4-5' })
createAgent({ model: ofAiSdk })
createAgent({ model: { provider: 'own', modelId: 'x', infer: async () => ({ content: [], finishReason: 'stop' }) } })
createAgent({ model: inAnyForm, output: z.string() })
// @ts-expect-error -- a model is required
createAgent({})
// @ts-expect-error -- the model must have infer
createAgent({ model: { provider: 'own', modelId: 'x' } })
// @ts-expect-error -- a number is not a model
createAgent({ model: 7 })
// @ts-expect-error -- a reply has parts and a finish reason
createAgent({ model: { provider: 'own', modelId: 'x', infer: async () => ({ content: 'Hi.' }) } })

// ── settings, prices and output options

createAgent({ model, settings: { temperature: 0, reasoning: 'low', stopSequences: ['.'] } })
// @ts-expect-error -- the setting is called maxOutputTokens
createAgent({ model, settings: { maxTokens: 100 } })
// @ts-expect-error -- a typo
createAgent({ model, settings: { temprature: 0 } })
createAgent({ model, settings: { providerOptions: { openai: { store: false } } } })
createAgent({ model, prices: { 'acme/big': { input: 1, output: 2, cachedInput: 0.1 } } })
// @ts-expect-error -- a temperature is a number
createAgent({ model, settings: { temperature: 'warm' } })
// @ts-expect-error -- unknown reasoning effort
createAgent({ model, settings: { reasoning: 'hardly' } })
// @ts-expect-error -- settings are recorded, so they are JSON
createAgent({ model, settings: { onDone: () => undefined } })
// @ts-expect-error -- a price has input and output
createAgent({ model, prices: { 'acme/big': { input: 1 } } })
// @ts-expect-error -- there are three strategies
createAgent({ model, output: z.string(), outputOptions: { strategy: 'magic' } })
// @ts-expect-error -- a schema must be convertible to JSON Schema
createAgent({ model, output: v.object({ city: v.string() }) })
// @ts-expect-error -- a type is not a schema
createAgent({ model, output: String })
// @ts-expect-error -- unknown option
createAgent({ model, modle: 'x' })
