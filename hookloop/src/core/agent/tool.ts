import type { AgentState } from '../state/agent-state.ts'
import type { JsonObject } from '../../values/json.ts'
import type { Message } from '../state/message.ts'
import type { InputOf, OutputOf, Schema, ToolRef } from '../../values/schema.ts'
import type { TokenUsage } from '../state/usage.ts'
import { AgentError, messageOf, clause } from '../../errors.ts'
import type { AgentDescription } from './agent-description.ts'
import { checkOptions } from '../../values/check-options.ts'
import { fitsNoObject } from '../../values/fits-no-object.ts'
import { parserOf, toJsonSchema, type Parser } from '../../values/parse-schema.ts'

/** The second argument of a tool's `execute`. */
export type ToolRun = {
  /** Aborts when the run is cancelled or the tool times out. */
  readonly signal: AbortSignal
  /** The same for every attempt at this call, also after a resume. Pass it to services that must act only once. */
  readonly idempotencyKey: string
  /** The state when the call started. A tool can only read it; hooks change it. */
  readonly state: AgentState
  /** Emits a `toolProgress` event. */
  readonly progress: (update: unknown) => void
  /** Adds the usage of model calls of the tool itself, so that limits include it. */
  readonly spend: (usage: Partial<TokenUsage>) => void
  /** A description of the agent that runs it. */
  readonly describe: () => AgentDescription
}

/** Where the call of an `agentTool` is made. */
export type DelegationPlace = {
  /** The nesting depth of the agent that calls: 0 for the root agent. */
  readonly depth: number
  /** The tools of the agent that calls. */
  readonly tools: readonly string[]
}

/** What happens to a call with an unknown outcome: `tell` the model, or `ask` an approver whether to run it again. */
export type OnUnknownOutcome = 'tell' | 'ask'

/** A tool, as returned by `tool` or `agentTool`. `I` is what the model sends, `O` what the schema parses it to. */
export interface Tool<I = unknown, O = unknown> extends ToolRef<I, O> {
  readonly description: string
  readonly inputSchema: JsonObject
  /** Whether it may run at the same time as other such tools. */
  readonly concurrent: boolean
  /** Whether each call needs approval, unless a guard allows it. */
  readonly ask: boolean
  /** Whether a call may be repeated if its outcome is unknown. */
  readonly idempotent: boolean
  /** What happens to a call that a crash interrupted. Undefined: as the agent's `approval` says. */
  readonly onUnknownOutcome: OnUnknownOutcome | undefined
  readonly timeoutMs: number | undefined
  readonly maxOutputChars: number
  readonly parse: Parser
  readonly execute: (args: never, run: ToolRun) => unknown
  /** Which agent does the work instead of `execute`. See `agentTool`. */
  readonly delegate?: (
    args: never,
    at: DelegationPlace,
  ) => { readonly name: string; readonly to: object; readonly input: string | Message }
}

/** What `tool` needs. */
export type ToolDefinition<S extends Schema | JsonObject> = {
  /** 1 to 128 letters, digits and `_ . : -`, unique in an agent. */
  readonly name: string
  /** What it does, for the model. */
  readonly description: string
  /** The schema of the arguments: Zod, ArkType, Valibot or JSON Schema. */
  readonly input: S
  /** Does the work. What it returns is the result, as JSON; what it throws is a failed call that the model can read. */
  readonly execute: (args: OutputOf<S>, run: ToolRun) => unknown
  /** Whether it may run at the same time as other such tools, because it only reads. Default false. */
  readonly concurrent?: boolean
  /** Whether each call needs approval, unless a guard allows it. Default false. */
  readonly ask?: boolean
  /** Whether a call may be repeated if its outcome is unknown, because it only reads or uses the idempotency key. Default false. */
  readonly idempotent?: boolean
  /** What happens to a call that a crash interrupted. Default: as the agent's `approval` says. */
  readonly onUnknownOutcome?: OnUnknownOutcome
  /** The time a call may take. Default: no limit. */
  readonly timeoutMs?: number
  /** The length of a result. Default 65,536. */
  readonly maxOutputChars?: number
}

const options = [
  'name',
  'description',
  'input',
  'execute',
  'concurrent',
  'ask',
  'idempotent',
  'onUnknownOutcome',
  'timeoutMs',
  'maxOutputChars',
] as const satisfies readonly (keyof ToolDefinition<Schema>)[]
const NAME = /^[A-Za-z0-9_.:-]{1,128}$/
const MAX_OUTPUT_CHARS = 65_536

/**
 * Defines a tool. Its arguments are validated by the schema and frozen.
 *
 * @example
 * const weather = tool({
 *   name: 'weather',
 *   description: 'Current weather of a city.',
 *   input: z.object({ city: z.string() }),
 *   execute: async ({ city }, { signal }) => (await fetch(`https://wttr.in/${city}?format=j1`, { signal })).json(),
 * })
 */
export function tool<S extends Schema | JsonObject>(definition: ToolDefinition<S>): Tool<InputOf<S>, OutputOf<S>> {
  return declareTool(definition)
}

/** The same, also for a tool whose work a subagent does. */
export function declareTool<S extends Schema | JsonObject>(
  definition: ToolDefinition<S>,
  delegate?: Tool['delegate'],
): Tool<InputOf<S>, OutputOf<S>> {
  const { name, description, input, execute, timeoutMs, onUnknownOutcome, idempotent = false } = definition
  checkOptions(`tool "${name}"`, definition, options, 'TOOL_INVALID')
  if (!NAME.test(name)) throw invalid(name, 'its name must be 1 to 128 letters, digits and _ . : -', name)
  if (onUnknownOutcome !== undefined && idempotent) {
    throw invalid(name, 'an "idempotent" tool is run again, so "onUnknownOutcome" has no effect', onUnknownOutcome)
  }
  const { maxOutputChars = MAX_OUTPUT_CHARS } = definition
  const made = Object.freeze({
    name,
    description,
    input: input as Schema<InputOf<S>, OutputOf<S>> | JsonObject,
    inputSchema: inputSchemaOf(name, input),
    execute,
    parse: parserOf(input),
    concurrent: definition.concurrent ?? false,
    ask: definition.ask ?? false,
    idempotent,
    onUnknownOutcome,
    timeoutMs,
    maxOutputChars,
    ...(delegate !== undefined && { delegate }),
  })
  declared.add(made)
  return made
}

export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && declared.has(value)
}

const declared = new WeakSet<object>()

function inputSchemaOf(name: string, input: Schema | JsonObject): JsonObject {
  let schema: JsonObject
  try {
    schema = toJsonSchema(input)
  } catch (error) {
    throw invalid(name, `its input schema cannot be converted to JSON Schema: ${messageOf(error)}`, input)
  }
  if (!fitsNoObject(schema)) return schema
  const advice = 'arguments are an object, so write z.object({ … }) with a field for the value'
  throw invalid(name, `its input schema fits no object: ${advice}`, input)
}

function invalid(name: string, why: string, value: unknown): AgentError {
  return new AgentError('TOOL_INVALID', `The tool "${name}" cannot be used: ${clause(why)}.`, { value })
}
