import { invalidOption } from '../../agent/check-options.ts'
import { parserOf, toJsonSchema, type Parsed, type Parser } from '../../agent/tools/parse-schema.ts'
import { tool, type Tool, type ToolRun } from '../../agent/tool.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { sizeProblem } from '../../state/named-values.ts'
import type { OutputOf, Schema } from '../../state/schema.ts'
import { schemaWithin } from '../../state/schema-within.ts'
import { messageOf } from '../../errors.ts'

/** A schema under its name: alone, or with words and examples for the model. */
export type SchemaEntry = Schema | JsonObject | Definition

type Definition = {
  readonly schema: Schema | JsonObject
  readonly description?: string
  readonly examples?: readonly unknown[]
}

export type Schemas = { readonly [name: string]: SchemaEntry }

/** What the schema of an entry makes of data; plain JSON Schema makes JSON. */
export type DataOf<E> = E extends Schema
  ? OutputOf<E>
  : E extends { readonly schema: infer S }
    ? S extends Schema
      ? OutputOf<S>
      : Json
    : Json

/** A schema that data can be taken in. */
export type Form = {
  readonly name: string
  readonly toolName: string
  readonly description: string
  readonly jsonSchema: JsonObject
  readonly parse: Parser
}

/** So that the name of the tool is one for every provider: they take 64 characters. */
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,39}$/
const PREFIX = 'structured_output_'

export const formTools = `${PREFIX}*`

export function toForms(schemas: Schemas, maxBytes: number): ReadonlyMap<string, Form> {
  const names = isJsonObject(schemas) ? Object.keys(schemas) : []
  if (names.length === 0) throw invalid('"schemas" must have at least one schema, by name', schemas)
  const forms = names.map((name) => toForm(name, schemas[name]!, maxBytes))
  return new Map(forms.map((form) => [form.toolName, form]))
}

function toForm(name: string, entry: SchemaEntry, maxBytes: number): Form {
  if (!NAME.test(name)) {
    throw invalid(`the name "${name}" must be 1 to 40 letters, digits and _, and begin with a letter`, name)
  }
  const { schema, description, examples = [] }: Definition = isDefinition(entry) ? entry : { schema: entry }
  const jsonSchema = shown(name, schema)
  const parse = parserOf(schema)
  if (!Array.isArray(examples)) throw invalid(`the examples of "${name}" must be a list`, examples)
  for (const example of examples) checkExample(name, example, parse)
  const own = description ?? jsonSchema['description']
  const words = [
    `Takes data of the form "${name}", checks it and keeps it.`,
    ...(typeof own === 'string' ? [own] : []),
    'If it does not fit you are told what is wrong with it: mend that and call again.',
    ...examples.map((example) => `Example of data: ${JSON.stringify(example)}`),
  ]
  return {
    name,
    toolName: `${PREFIX}${name}`,
    description: words.join('\n'),
    jsonSchema,
    parse: bounded(parse, maxBytes),
  }
}

/** Far less than a state can hold: what is kept lies some levels deep in it. */
const MAX_DEPTH = 100

/** What is larger than may be kept is not even looked at. */
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

/** The schema of an entry, in whichever form it was given. */
export function schemaOf(entry: SchemaEntry): Schema | JsonObject {
  return isDefinition(entry) ? entry.schema : entry
}

function shown(name: string, schema: Schema | JsonObject): JsonObject {
  try {
    return toJsonSchema(schema)
  } catch (error) {
    throw invalid(`the schema "${name}" cannot be shown to a model: ${messageOf(error)}`, schema)
  }
}

/** An example that does not fit would teach the model to fail. A schema that answers later is not waited for. */
function checkExample(name: string, example: unknown, parse: Parser): void {
  const parsed = parse(example as Json)
  if (!(parsed instanceof Promise) && 'problem' in parsed) {
    throw invalid(`an example of "${name}" does not fit its schema: ${parsed.problem}`, example)
  }
}

/**
 * A tool for one schema. There is one for each, and not one that takes them all: a model that picks a tool has picked its
 * schema, whereas of one schema with alternatives models make mixtures, and providers hold a model to it only in parts.
 */
export function formTool(form: Form, execute: (args: FormArgs, run: ToolRun) => string): Tool {
  return tool({ name: form.toolName, description: form.description, input: inputOf(form), execute })
}

export type FormArgs = { readonly data: unknown; readonly store_as?: string }

const storeAs: JsonObject = {
  type: 'string',
  description:
    'A name to keep it by when there is more than one of this form. What is kept by that name already is replaced.',
}

/** The data is read by its own schema, so that guards and the tool get what that makes of it. */
function inputOf({ jsonSchema, parse }: Form): Schema<JsonObject, FormArgs> {
  const shownAs = (): JsonObject => schemaWithin(jsonSchema, 'data', { store_as: storeAs })
  const validate = (args: unknown): Result | Promise<Result> => {
    const problem = argsProblem(args)
    if (problem !== undefined) return { issues: [{ message: problem }] }
    const { data, store_as: name } = args as JsonObject
    const parsed = parse(data!)
    const toResult = (of: Parsed): Result =>
      'problem' in of
        ? { issues: [{ message: `data: ${of.problem}` }] }
        : { value: { data: of.value, ...(name !== undefined && { store_as: name as string }) } }
    return parsed instanceof Promise ? parsed.then(toResult) : toResult(parsed)
  }
  return { '~standard': { version: 1, vendor: 'hookloop', validate, jsonSchema: { input: shownAs, output: shownAs } } }
}

type Result = { readonly value: FormArgs } | { readonly issues: readonly { readonly message: string }[] }

function argsProblem(args: unknown): string | undefined {
  if (!isJsonObject(args) || !Object.hasOwn(args, 'data')) return '"data" is missing: put what you have under it'
  const foreign = Object.keys(args).find((key) => key !== 'data' && key !== 'store_as')
  if (foreign !== undefined) return 'there are "data" and "store_as" and nothing else: put everything under "data"'
  return ['string', 'undefined'].includes(typeof args['store_as']) ? undefined : '"store_as" must be a text'
}

function invalid(why: string, value: unknown): Error {
  return invalidOption('structuredOutput', why, value)
}
