import { buildAgent, type Agent, type AgentOptions } from './agent/build-agent.ts'
import { completion } from './capabilities/completion.ts'
import { guards } from './capabilities/guards.ts'
import { outputPlan, type OutputOptions } from './capabilities/output/output.ts'
import type { JsonObject } from './data/json.ts'
import type { OutputOf, Schema } from './data/schema.ts'
import type { Prices } from './models/prices.ts'
import { modelMaker } from './models/to-model.ts'

type Options = AgentOptions & {
  /** What models cost, in US dollars per million tokens, by `provider/model`. Goes before the list that comes along. */
  readonly prices?: Prices
}

type TypedOptions<S> = Options & {
  /** The schema of the answer: `run.output` is then what it makes of it. */
  readonly output: S
  readonly outputOptions?: OutputOptions
}

/**
 * Puts an agent together. It ends when the model is done and within 20 steps, 32,768 tokens and 300 seconds, unless it
 * brings its own `completion` or `guards`.
 */
export function createAgent<S extends Schema | JsonObject>(options: TypedOptions<S>): Agent<OutputOf<S>>
export function createAgent(options: Options): Agent
export function createAgent(options: Options & Partial<TypedOptions<Schema | JsonObject>>): Agent<unknown> {
  const { prices, output, outputOptions, ...rest } = options
  return buildAgent(rest, {
    capabilities: [completion(), guards()],
    toModel: modelMaker(prices),
    ...(output !== undefined && { output: outputPlan(output, outputOptions) }),
  })
}
