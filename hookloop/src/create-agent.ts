import { checkOptions, definedOptions, invalidOption, optionNames } from './values/check-options.ts'
import { buildAgent, type Agent } from './core/agent/agent.ts'
import type { PlainAgentOptions } from './core/agent/agent-parts.ts'
import { completion } from './capabilities/completion.ts'
import { guards } from './capabilities/guards.ts'
import { outputPlan, type OutputOptions } from './typed-output.ts'
import type { JsonObject } from './values/json.ts'
import type { OutputOf, Schema } from './values/schema.ts'
import type { Prices } from './models/price-list.ts'
import { checkedPrices } from './models/prices.ts'
import { modelMaker } from './models/to-model.ts'
import { sessionPort } from './sessions/session/session.ts'
import type { SessionStore } from './sessions/stores/store.ts'

/**
 * Options of `createAgent`. With `output`, the answer of a run is a value of that schema instead of a text.
 *
 * @interface
 */
export type AgentOptions<S = Schema | JsonObject> = PlainAgentOptions & {
  /** Prices of models, which override the built-in list. Default none. */
  readonly prices?: Prices
  /** Stores sessions, for `agent.session(id)`, `agent.run(input, { session })` and `agent.resume(id)`. Default none. */
  readonly store?: SessionStore
  /** The schema of the answer: `run.output` has its type. Default: the answer is a text. */
  readonly output?: S
  /** How the schema is enforced, and how often an invalid answer may be corrected. Default: see `OutputOptions`. */
  readonly outputOptions?: OutputOptions
}

/**
 * Creates an agent. A run ends when the model calls no more tools, and is limited to 50 steps, 2,000,000 tokens and 30
 * minutes, unless the agent has its own `completion` or `guards`.
 *
 * @example
 * const agent = createAgent({
 *   model: 'anthropic/claude-sonnet-5-5',
 *   instructions: 'You repair programs.',
 *   use: [bash({ allow: ['npm test'] }), guards({ maxSteps: 30 }), retry()],
 * })
 *
 * @example
 * // A typed answer: run.output is { title: string; tags: string[] }.
 * createAgent({ model, output: z.object({ title: z.string(), tags: z.array(z.string()) }) })
 */
export function createAgent<S extends Schema | JsonObject>(
  options: AgentOptions<S> & { readonly output: S },
): Agent<OutputOf<S>>
export function createAgent(options: AgentOptions<never>): Agent
export function createAgent(options: AgentOptions): Agent<unknown>
export function createAgent(options: AgentOptions): Agent<unknown> {
  checkOptions('createAgent', options, names)
  const { prices, output, outputOptions, store, ...rest } = definedOptions(options)
  if (outputOptions !== undefined && output === undefined)
    throw invalidOption('createAgent', '"outputOptions" has no effect without "output"', outputOptions)
  return buildAgent(rest, {
    capabilities: [completion(), guards()],
    toModel: modelMaker(checkedPrices(prices)),
    limits: (limits) => guards({ ...noLimits, ...definedOptions(limits) }),
    ...(store !== undefined && { sessions: sessionPort(store) }),
    ...(output !== undefined && { output: outputPlan(output, outputOptions) }),
  })
}

/** A subagent has the limits of its parent, and of its own only those that are set. */
const noLimits = { maxSteps: null, maxTokens: null, maxTimeMs: null } as const

const names = optionNames<AgentOptions>({
  name: true,
  model: true,
  instructions: true,
  use: true,
  settings: true,
  maxConcurrentTools: true,
  prices: true,
  output: true,
  outputOptions: true,
  store: true,
})
