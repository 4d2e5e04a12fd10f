import { andThen } from '../../values/thenable.ts'
import { invalidOption } from '../../values/check-options.ts'
import { parserOf, toJsonSchema, type Parsed, type Parser } from '../../values/parse-schema.ts'
import { tool, type Tool, type ToolRun } from '../../plugin.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { sizeProblem } from '../../values/named-values.ts'
import type { OutputOf, Schema } from '../../values/schema.ts'
import { schemaWithin } from '../../values/schema-within.ts'
import { messageOf } from '../../errors.ts'

/** A schema, alone or with a description and examples for the model. */
export type SchemaEntry = Schema | JsonObject | Definition

type Definition = {
  readonly schema: Schema | JsonObject
  /** What the data is for. Default: the description in the schema. */
  readonly description?: string
  /** Valid examples, shown to the model. Default none. */
  readonly examples?: readonly unknown[]
}

/** The schemas of `structuredOutput` by name. */
export type Schemas = { readonly [name: string]: SchemaEntry }

/** The type of data that a schema parses to; for plain JSON Schema, JSON. */
export type DataOf<E> = E extends Schema
  ? OutputOf<E>
  : E extends { readonly schema: infer S }
    ? S extends Schema
      ? OutputOf<S>
      : Json
    : Json

/** A schema with its tool. */
export type Form = {
  readonly name: string
  readonly toolName: string
  readonly description: string
  readonly jsonSchema: JsonObject
  readonly parse: Parser
}

/** With the prefix, at most 64 characters: the limit of providers for tool names. */
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,39}$/
const PREFIX = 'structured_output_'

export const formTools = `${PREFIX}*`

export function toForms(schemas: Schemas, maxBytes: number): ReadonlyMap<string, Form> {
  const forms = Object.entries(schemas).map(([name, entry]) => toForm(name, entry, maxBytes))
  return new Map(forms.map((form) => [form.toolName, form]))
}

function toForm(name: string, entry: SchemaEntry, maxBytes: number): Form {
  if (!NAME.test(name)) {
    throw invalid(`the name "${name}" must be 1 to 40 letters, digits and _, starting with a letter`, name)
  }
  const { schema, description, examples = [] }: Definition = isDefinition(entry) ? entry : { schema: entry }
  const jsonSchema = jsonSchemaOf(name, schema)
  const parse = parserOf(schema)
  for (const example of examples) checkExample(name, example, parse)
  const own = description ?? jsonSchema['description']
  const lines = [
    `Validates and saves data of the type "${name}".`,
    ...(typeof own === 'string' ? [own] : []),
    'If it is invalid, the result says what is wrong: correct it and call again.',
    ...examples.map((example) => `Example: ${JSON.stringify(example)}`),
  ]
  return {
    name,
    toolName: `${PREFIX}${name}`,
    description: lines.join('\n'),
    jsonSchema,
    parse: bounded(parse, maxBytes),
  }
}

/** Far less than a state can hold, because the data is nested in it. */
const MAX_DEPTH = 100

/** Checks the size before the schema. */
function bounded(parse: Parser, maxValueBytes: number): Parser {
  return (data) => {
    const problem = sizeProblem(data, { maxValueBytes, maxDepth: MAX_DEPTH })
    return problem === undefined ? parse(data) : { problem }
  }
}

const parts: readonly string[] = ['schema', 'description', 'examples']

function isDefinition(entry: SchemaEntry): entry is Definition {
  if (typeof entry !== 'object' || entry === null || '~standard' in entry) return false
  return 'schema' in entry && Object.keys(entry).every((key) => parts.includes(key))
}

/** The schema of an entry. */
export function schemaOf(entry: SchemaEntry): Schema | JsonObject {
  return isDefinition(entry) ? entry.schema : entry
}

function jsonSchemaOf(name: string, schema: Schema | JsonObject): JsonObject {
  try {
    return toJsonSchema(schema)
  } catch (error) {
    throw invalid(`the schema "${name}" cannot be converted to JSON Schema: ${messageOf(error)}`, schema)
  }
}

/** An invalid example would teach the model to fail. Asynchronous schemas are not checked. */
function checkExample(name: string, example: unknown, parse: Parser): void {
  const parsed = parse(example as Json)
  if (!(parsed instanceof Promise) && 'problem' in parsed) {
    throw invalid(`an example of "${name}" does not match its schema: ${parsed.problem}`, example)
  }
}

/**
 * A tool for one schema. There is one tool per schema and not one for all: choosing a tool chooses the schema, while models
 * mix the alternatives of a combined schema, and providers enforce those only in part.
 */
export function formTool(form: Form, execute: (args: FormArgs, run: ToolRun) => string): Tool {
  return tool({ name: form.toolName, description: form.description, input: inputOf(form), execute })
}

export type FormArgs = { readonly data: unknown; readonly store_as?: string }

const storeAs: JsonObject = {
  type: 'string',
  description: 'A name to save it under if there are several of this type. Data with the same name is replaced.',
}

/** The data is parsed by its own schema, so that guards and the tool get the parsed value. */
function inputOf({ jsonSchema, parse }: Form): Schema<JsonObject, FormArgs> {
  const toSchema = (): JsonObject => schemaWithin(jsonSchema, 'data', { store_as: storeAs })
  const validate = (args: unknown): Result | Promise<Result> => {
    const problem = argsProblem(args)
    if (problem !== undefined) return { issues: [{ message: problem }] }
    const { data, store_as: name } = args as JsonObject
    const parsed = parse(data!)
    const toResult = (of: Parsed): Result =>
      'problem' in of
        ? { issues: [{ message: `data: ${of.problem}` }] }
        : { value: { data: of.value, ...(name !== undefined && { store_as: name as string }) } }
    return andThen(parsed, toResult)
  }
  return {
    '~standard': { version: 1, vendor: 'hookloop', validate, jsonSchema: { input: toSchema, output: toSchema } },
  }
}

type Result = { readonly value: FormArgs } | { readonly issues: readonly { readonly message: string }[] }

function argsProblem(args: unknown): string | undefined {
  if (!isJsonObject(args) || !Object.hasOwn(args, 'data')) return '"data" is missing: put the data there'
  const other = Object.keys(args).find((key) => key !== 'data' && key !== 'store_as')
  if (other !== undefined) return 'only "data" and "store_as" are allowed: put everything under "data"'
  return ['string', 'undefined'].includes(typeof args['store_as']) ? undefined : '"store_as" must be a string'
}

function invalid(why: string, value: unknown): Error {
  return invalidOption('structuredOutput', why, value)
}
