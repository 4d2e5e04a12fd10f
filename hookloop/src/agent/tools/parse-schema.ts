import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isJsonObject, toJson, type Json, type JsonObject } from '../../state/json.ts'
import { jsonSchemaValidator } from '../../state/json-schema.ts'
import type { Schema } from '../../state/schema.ts'
import { messageOf } from '../../errors.ts'

/** What a schema makes of a value, or what is wrong with it, in words a model can act on. */
export type Parsed = { readonly value: unknown } | { readonly problem: string }
export type Parser = (value: Json) => Parsed | Promise<Parsed>

/** A schema as JSON Schema: what a model is shown of it. Throws when it cannot be shown. */
export function toJsonSchema(schema: Schema | JsonObject): JsonObject {
  if (!isStandard(schema)) {
    if (isJsonObject(schema)) return toJson(schema) as JsonObject
    throw new TypeError('it is neither a Standard Schema nor a JSON Schema object')
  }
  const standard = schema['~standard']
  if (standard.jsonSchema === undefined) {
    throw new TypeError('it cannot give its JSON Schema; with Valibot, wrap it in toStandardJsonSchema()')
  }
  return toJson(standard.jsonSchema.input({ target: 'draft-2020-12' })) as JsonObject
}

/** A schema is somebody's code: when it throws, the value does not fit, and that is all. */
export function parserOf(input: Schema | JsonObject): Parser {
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

function standardParser(schema: Schema): Parser {
  const { validate } = schema['~standard']
  const toParsed = (result: StandardSchemaV1.Result<unknown>): Parsed =>
    result.issues === undefined ? { value: result.value } : { problem: wordAll(result.issues.map(wordIssue)) }
  return (args) => {
    const result = validate(args)
    return result instanceof Promise ? result.then(toParsed) : toParsed(result)
  }
}

const MAX_ISSUES = 20
const MAX_PROBLEM = 4_000

/** A model is told as much as it can act on. Of a long list in which everything is wrong, that is the beginning. */
function wordAll(issues: readonly string[]): string {
  const words = issues.slice(0, MAX_ISSUES).join('; ')
  const more = issues.length > MAX_ISSUES ? `; and ${issues.length - MAX_ISSUES} more` : ''
  return (words.length > MAX_PROBLEM ? `${words.slice(0, MAX_PROBLEM).toWellFormed()}…` : words) + more
}

function wordIssue({ message, path = [] }: StandardSchemaV1.Issue): string {
  const keys = path.map((each) => String(typeof each === 'object' ? each.key : each))
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`
}

function jsonSchemaParser(schema: JsonObject): Parser {
  const problemsOf = jsonSchemaValidator(schema)
  return (args) => {
    const problems = problemsOf(args)
    if (problems.length === 0) return { value: args }
    return { problem: wordAll(problems.map(({ path, message }) => `${['#', ...path].join('/')}: ${message}`)) }
  }
}

function isStandard(input: unknown): input is Schema {
  return (typeof input === 'object' || typeof input === 'function') && input !== null && '~standard' in input
}
