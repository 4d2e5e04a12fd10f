import { createRequire } from 'node:module'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isJsonObject, toJson, type Json, type JsonObject } from '../data/json.ts'
import type { InputOf, OutputOf, Schema, ToolRef } from '../data/schema.ts'
import { AgentError, messageOf } from '../errors.ts'

/** What a tool is given beside its arguments. */
export type ToolRun = {
  /** Aborts when the run is cancelled or the tool's time is over. */
  readonly signal: AbortSignal
  /** The same on every attempt at this call, also after a resume: hand it on to whatever must happen only once. */
  readonly idempotencyKey: string
  /** Tells whoever watches how far it is. */
  readonly progress: (update: unknown) => void
}

export interface Tool<I = unknown, O = unknown> extends ToolRef<I, O> {
  readonly description: string
  readonly inputSchema: JsonObject
  /** May run beside other such tools: it only reads, or keeps apart from them. */
  readonly concurrent: boolean
  /** A person is asked before each call, unless a guard allows it. */
  readonly ask: boolean
  readonly timeoutMs: number | undefined
  readonly maxOutputChars: number
  readonly parse: (args: Json) => Parsed | Promise<Parsed>
  readonly execute: (args: never, run: ToolRun) => unknown
}

export type Parsed = { readonly value: unknown } | { readonly problem: string }

const NAME = /^[A-Za-z0-9_.:-]{1,128}$/
const MAX_OUTPUT_CHARS = 65_536

/** Declares a tool. The arguments it is called with have passed its schema and cannot be written to. */
export function tool<S extends Schema | JsonObject>(definition: {
  readonly name: string
  readonly description: string
  readonly input: S
  readonly execute: (args: OutputOf<S>, run: ToolRun) => unknown
  readonly concurrent?: boolean
  readonly ask?: boolean
  readonly timeoutMs?: number
  readonly maxOutputChars?: number
}): Tool<InputOf<S>, OutputOf<S>> {
  const { name, description, input, execute, timeoutMs } = definition
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(
      JSON.stringify(name) ?? 'without a name',
      'its name must be 1 to 128 letters, digits and _ . : -',
      name,
    )
  }
  if (typeof description !== 'string') throw invalid(name, 'it needs a description for the model', description)
  if (typeof execute !== 'function') throw invalid(name, 'it needs an execute function', execute)
  if (timeoutMs !== undefined && !(timeoutMs > 0)) throw invalid(name, '"timeoutMs" must be positive', timeoutMs)
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
    timeoutMs,
    maxOutputChars,
  })
  declared.add(made)
  return made
}

export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && declared.has(value)
}

const declared = new WeakSet<object>()

function isStandard(input: unknown): input is Schema {
  return (typeof input === 'object' || typeof input === 'function') && input !== null && '~standard' in input
}

function inputSchemaOf(name: string, input: Schema | JsonObject): JsonObject {
  try {
    if (!isStandard(input)) {
      if (isJsonObject(input)) return toJson(input) as JsonObject
      throw new TypeError('it is neither a Standard Schema nor a JSON Schema object')
    }
    const standard = input['~standard']
    if (standard.jsonSchema === undefined) {
      throw new TypeError('it cannot give its JSON Schema; with Valibot, wrap it in toStandardJsonSchema()')
    }
    return toJson(standard.jsonSchema.input({ target: 'draft-2020-12' })) as JsonObject
  } catch (error) {
    throw invalid(name, `its input schema cannot be shown to a model: ${messageOf(error)}`, input)
  }
}

/** A schema is somebody's code: when it throws, the arguments do not fit, and that is all. */
function parserOf(input: Schema | JsonObject): Tool['parse'] {
  const parse = isStandard(input) ? standardParser(input) : jsonSchemaParser(input)
  const failed = (thrown: unknown): Parsed => ({ problem: `the schema failed: ${messageOf(thrown)}` })
  return (args) => {
    try {
      const parsed = parse(args)
      return parsed instanceof Promise ? parsed.catch(failed) : parsed
    } catch (thrown) {
      return failed(thrown)
    }
  }
}

function standardParser(schema: Schema): Tool['parse'] {
  const { validate } = schema['~standard']
  const toParsed = (result: StandardSchemaV1.Result<unknown>): Parsed =>
    result.issues === undefined ? { value: result.value } : { problem: result.issues.map(wordIssue).join('; ') }
  return (args) => {
    const result = validate(args)
    return result instanceof Promise ? result.then(toParsed) : toParsed(result)
  }
}

function wordIssue({ message, path = [] }: StandardSchemaV1.Issue): string {
  const keys = path.map((each) => String(typeof each === 'object' ? each.key : each))
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`
}

function jsonSchemaParser(schema: JsonObject): Tool['parse'] {
  // The validator is loaded with the first call, so that agents without plain JSON Schema never pay for it.
  let validator: import('@cfworker/json-schema').Validator | undefined
  return (args) => {
    if (validator === undefined) {
      const { Validator } = createRequire(import.meta.url)(
        '@cfworker/json-schema',
      ) as typeof import('@cfworker/json-schema')
      validator = new Validator(schema, '2020-12', false)
    }
    const { valid, errors } = validator.validate(args)
    if (valid) return { value: args }
    // The outer errors only repeat that something inside did not fit.
    const inner = errors.filter((each) => each.keyword !== 'properties' && each.keyword !== 'items')
    return { problem: inner.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`).join('; ') }
  }
}

function invalid(name: string, why: string, value: unknown): AgentError {
  return new AgentError('TOOL_INVALID', `The tool "${name}" cannot be used: ${why}.`, { value })
}
