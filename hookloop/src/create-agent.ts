import { checkOptions, definedOptions } from './agent/check-options.ts'
import { buildAgent, type Agent } from './agent/agent.ts'
import type { PlainAgentOptions } from './agent/agent-parts.ts'
import { completion } from './capabilities/completion.ts'
import { guards } from './capabilities/guards.ts'
import { outputPlan, type OutputOptions } from './capabilities/output.ts'
import type { JsonObject } from './state/json.ts'
import type { OutputOf, Schema } from './state/schema.ts'
import type { Prices } from './models/price-list.ts'
import { checkedPrices } from './models/prices.ts'
import { modelMaker } from './models/to-model.ts'
import { sessionPort } from './sessions/session/session.ts'
import type { SessionStore } from './sessions/stores/store.ts'

/** What an agent is made of. */
export type AgentOptions = PlainAgentOptions & {
  /** What models cost, in US dollars per million tokens, by `provider/model`. Goes before the list that comes along. */
  readonly prices?: Prices
  /** Where sessions are kept: `agent.run(input, { session })` and `agent.resume(id)`. */
  readonly store?: SessionStore
}

/** The same for an agent with a typed answer. */
export type TypedAgentOptions<S> = AgentOptions & {
  /** The schema of the answer: `run.output` is then what it makes of it. */
  readonly output: S
  readonly outputOptions?: OutputOptions
}

/**
 * Puts an agent together. It ends when the model is done and within 20 steps, 32,768 tokens and 300 seconds, unless it
 * brings its own `completion` or `guards`.
 */
export function createAgent<S extends Schema | JsonObject>(options: TypedAgentOptions<S>): Agent<OutputOf<S>>
export function createAgent(options: AgentOptions): Agent
export function createAgent(options: AgentOptions & Partial<TypedAgentOptions<Schema | JsonObject>>): Agent<unknown> {
  const { prices, output, outputOptions, store, ...rest } = options
  checkOptions('createAgent', options, names)
  return buildAgent(rest, {
    capabilities: [completion(), guards()],
    toModel: modelMaker(checkedPrices(prices)),
    limits: (limits) => guards({ ...noLimits, ...definedOptions(limits) }),
    ...(store !== undefined && { sessions: sessionPort(store) }),
    ...(output !== undefined && { output: outputPlan(output, outputOptions) }),
  })
}

/** An agent that is made of another has the limits of that one, and of its own only those it is given. */
const noLimits = { maxSteps: null, maxTokens: null, maxTimeMs: null } as const

const names: readonly (keyof TypedAgentOptions<Schema>)[] = [
  ...(['name', 'model', 'instructions', 'use', 'settings', 'maxConcurrentTools'] as const),
  ...(['prices', 'output', 'outputOptions', 'store'] as const),
]
