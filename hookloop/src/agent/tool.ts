import type { AgentState } from '../state/agent-state.ts'
import type { JsonObject } from '../state/json.ts'
import type { Message } from '../state/message.ts'
import type { InputOf, OutputOf, Schema, ToolRef } from '../state/schema.ts'
import type { TokenUsage } from '../state/usage.ts'
import { AgentError, messageOf } from '../errors.ts'
import type { AgentDescription } from './agent-description.ts'
import { checkOptions } from './check-options.ts'
import { parserOf, toJsonSchema, type Parser } from './tools/parse-schema.ts'

/** What a tool is given beside its arguments. */
export type ToolRun = {
  /** Aborts when the run is cancelled or the tool's time is over. */
  readonly signal: AbortSignal
  /** The same on every attempt at this call, also after a resume: hand it on to whatever must happen only once. */
  readonly idempotencyKey: string
  /** The state as it was when the call was started. A tool reads it; what is to be written is a hook's to write. */
  readonly state: AgentState
  /** Tells whoever watches how far it is. */
  readonly progress: (update: unknown) => void
  /** Counts what the tool itself has spent on models: limits then see it. */
  readonly spend: (usage: Partial<TokenUsage>) => void
  /** What the agent that runs it consists of. */
  readonly describe: () => AgentDescription
}

/** Where a call is made that an agent does the work of. */
export type DelegationPlace = {
  /** How many agents it is inside of: 0 in the run itself. */
  readonly depth: number
  /** The tools of the agent that calls. */
  readonly tools: readonly string[]
}

/** `tell`: the model is told that nobody knows. `ask`: a person says whether the call is run again. */
export type OnUnknownOutcome = 'tell' | 'ask'

export interface Tool<I = unknown, O = unknown> extends ToolRef<I, O> {
  readonly description: string
  readonly inputSchema: JsonObject
  /** May run beside other such tools: it only reads, or keeps apart from them. */
  readonly concurrent: boolean
  /** A person is asked before each call, unless a guard allows it. */
  readonly ask: boolean
  /** May be done again when nobody knows whether it was done: it only reads, or heeds the idempotency key. */
  readonly idempotent: boolean
  /** What comes of a call that a crash cut off; as the agent's `approval` says if the tool does not. */
  readonly onUnknownOutcome: OnUnknownOutcome | undefined
  readonly timeoutMs: number | undefined
  readonly maxOutputChars: number
  readonly parse: Parser
  readonly execute: (args: never, run: ToolRun) => unknown
  /** Says which agent does the work, in place of `execute`. See `agentTool`. */
  readonly delegate?: (
    args: never,
    at: DelegationPlace,
  ) => { readonly name: string; readonly to: object; readonly input: string | Message }
}

type ToolDefinition<S extends Schema | JsonObject> = {
  readonly name: string
  readonly description: string
  readonly input: S
  readonly execute: (args: OutputOf<S>, run: ToolRun) => unknown
  readonly concurrent?: boolean
  readonly ask?: boolean
  readonly idempotent?: boolean
  readonly onUnknownOutcome?: OnUnknownOutcome
  readonly timeoutMs?: number
  readonly maxOutputChars?: number
}

const options: readonly string[] = [
  ...(['name', 'description', 'input', 'execute', 'concurrent', 'ask', 'idempotent'] as const),
  ...(['onUnknownOutcome', 'timeoutMs', 'maxOutputChars'] as const),
] satisfies (keyof ToolDefinition<Schema>)[]
const NAME = /^[A-Za-z0-9_.:-]{1,128}$/
const MAX_OUTPUT_CHARS = 65_536

/** Declares a tool. The arguments it is called with have passed its schema and cannot be written to. */
export function tool<S extends Schema | JsonObject>(definition: ToolDefinition<S>): Tool<InputOf<S>, OutputOf<S>> {
  return declareTool(definition)
}

/** The same, also for a tool that an agent does the work of. */
export function declareTool<S extends Schema | JsonObject>(
  definition: ToolDefinition<S>,
  delegate?: Tool['delegate'],
): Tool<InputOf<S>, OutputOf<S>> {
  const { name, description, input, execute, timeoutMs, onUnknownOutcome, idempotent = false } = definition
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(
      JSON.stringify(name) ?? 'without a name',
      'its name must be 1 to 128 letters, digits and _ . : -',
      name,
    )
  }
  checkOptions(`tool "${name}"`, definition, options, 'TOOL_INVALID')
  if (typeof description !== 'string') throw invalid(name, 'it needs a description for the model', description)
  if (typeof execute !== 'function') throw invalid(name, 'it needs an execute function', execute)
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw invalid(name, '"timeoutMs" must be positive', timeoutMs)
  if (onUnknownOutcome !== undefined && !isOnUnknownOutcome(onUnknownOutcome)) {
    throw invalid(name, `"onUnknownOutcome" must be 'tell' or 'ask'`, onUnknownOutcome)
  }
  if (onUnknownOutcome !== undefined && idempotent) {
    throw invalid(name, 'one that is "idempotent" is run again, so it has no "onUnknownOutcome"', onUnknownOutcome)
  }
  const maxOutputChars = definition.maxOutputChars ?? MAX_OUTPUT_CHARS
  if (!(maxOutputChars > 0)) throw invalid(name, '"maxOutputChars" must be positive', maxOutputChars)
  const made = Object.freeze({
    name,
    description,
    input: input as Schema<InputOf<S>, OutputOf<S>> | JsonObject,
    inputSchema: inputSchemaOf(name, input),
    execute: execute,
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

export function isOnUnknownOutcome(value: unknown): value is OnUnknownOutcome {
  return value === 'tell' || value === 'ask'
}

function inputSchemaOf(name: string, input: Schema | JsonObject): JsonObject {
  try {
    return toJsonSchema(input)
  } catch (error) {
    throw invalid(name, `its input schema cannot be shown to a model: ${messageOf(error)}`, input)
  }
}

function invalid(name: string, why: string, value: unknown): AgentError {
  return new AgentError('TOOL_INVALID', `The tool "${name}" cannot be used: ${why}.`, { value })
}
