import { describeValue, isPlainObject } from './describe-value.ts'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isJsonObject, toJson, type Json, type JsonObject } from './json.ts'
import { jsonSchemaValidator, untrustedValidator, type SchemaValidator } from './json-schema.ts'
import type { Schema } from './schema.ts'
import { fieldsProblem, invalidKeyword, keywordTypo } from './schema-problem.ts'
import { messageOf } from '../errors.ts'
import { andThen, type MaybePromise } from './thenable.ts'

/** A parsed value, or what is wrong with it, as text that a model can act on. */
export type Parsed = { readonly value: unknown } | { readonly problem: string }
export type Parser = (value: Json) => MaybePromise<Parsed>

/** A schema as JSON Schema, as models get it. Throws if it cannot be converted. */
export function toJsonSchema(schema: Schema | JsonObject): JsonObject {
  const problem = schemaProblem(schema)
  if (problem !== undefined) throw new TypeError(problem)
  if (!isStandard(schema)) return validJsonSchema(toJson(schema) as JsonObject)
  return toJson(schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' })) as JsonObject
}

function validJsonSchema(schema: JsonObject): JsonObject {
  const problem = invalidKeyword(schema) ?? keywordTypo(schema)
  if (problem !== undefined) throw new TypeError(problem)
  return schema
}

/** Why a value is not a schema that can be converted, with the advice for the library that it is from. */
function schemaProblem(schema: unknown): string | undefined {
  if (isStandard(schema)) {
    const { jsonSchema, vendor } = schema['~standard'] as Partial<Schema['~standard']>
    if (typeof jsonSchema?.input === 'function') return undefined
    if (vendor === 'zod') return ZOD_3
    if (vendor === 'valibot') return 'a Valibot schema has no JSON Schema; wrap it in toStandardJsonSchema()'
    return `${vendor ?? 'its library'} does not convert it to JSON Schema; pass the JSON Schema instead`
  }
  if (isJsonObject(schema) && '_def' in schema && 'safeParse' in schema) return ZOD_3
  if (!isPlainObject(schema))
    return `${describeValue(schema)} is neither a schema of Zod 4, ArkType or Valibot nor a JSON Schema object`
  if (Object.values(schema).some(isStandard)) return 'its fields are schemas, but it is not one; use z.object({ … })'
  return fieldsProblem(schema)
}

const ZOD_3 =
  "it is a schema of Zod 3, which has no JSON Schema; use Zod 4, or import { z } from 'zod/v4' with Zod 3.25"

/** The parser of a schema. Schemas are user code: when one throws, the value does not fit. */
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
  const toParsed = (result: StandardSchemaV1.Result<unknown>): Parsed => {
    if (Object(result) !== result) throw new Error(`it returned ${describeValue(result)}`)
    return result.issues === undefined ? { value: result.value } : { problem: issueText(result.issues.map(toText)) }
  }
  return (args) => andThen(validate(args), toParsed)
}

const MAX_ISSUES = 20
const MAX_PROBLEM = 4_000

/** The first issues, up to a length that a model can act on. */
function issueText(issues: readonly string[]): string {
  const text = issues.slice(0, MAX_ISSUES).join('; ')
  const more = issues.length > MAX_ISSUES ? `; and ${issues.length - MAX_ISSUES} more` : ''
  return (text.length > MAX_PROBLEM ? `${text.slice(0, MAX_PROBLEM).toWellFormed()}…` : text) + more
}

function toText({ message, path = [] }: StandardSchemaV1.Issue): string {
  const keys = path.map((each) => String(typeof each === 'object' ? each.key : each))
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`
}

function jsonSchemaParser(schema: JsonObject): (value: Json) => Parsed {
  return parserWith(jsonSchemaValidator(schema))
}

/**
 * The parser of a JSON Schema that another program has sent. It takes a limited time, and accepts at least what the schema
 * accepts: what cannot be checked is left to that program.
 */
export function untrustedParserOf(schema: JsonObject): (value: Json) => Parsed {
  const parse = parserWith(untrustedValidator(schema))
  return (value) => {
    try {
      return parse(value)
    } catch {
      return { value }
    }
  }
}

function parserWith(problemsOf: SchemaValidator): (value: Json) => Parsed {
  return (value) => {
    const problems = problemsOf(value)
    if (problems.length === 0) return { value }
    return { problem: issueText(problems.map(({ path, message }) => `${['#', ...path].join('/')}: ${message}`)) }
  }
}

function isStandard(input: unknown): input is Schema {
  return (typeof input === 'object' || typeof input === 'function') && input !== null && '~standard' in input
}

/**
 * Parsed arguments as a frozen copy, so that the tool gets exactly what the guards have seen and no value of the schema
 * is frozen. A Date, Map, Set or buffer cannot be frozen: `share` returns a copy of its own for each reader. An instance of
 * any other class is passed as it is, because there is no general way to copy one.
 */
export function freezeParsed(value: unknown, raw: Json): { readonly value: unknown; readonly share?: () => unknown } {
  if (value === raw) return { value } // JSON is frozen already
  const copy = new FrozenCopy(false)
  const frozen = copy.of(value)
  return copy.isMutable ? { value: frozen, share: () => new FrozenCopy(true).of(frozen) } : { value: frozen }
}

/** The objects around a value, innermost first. */
type Path = { readonly value: object; readonly outer: Path | undefined }

class FrozenCopy {
  isMutable = false
  readonly #clones: boolean

  constructor(clones: boolean) {
    this.#clones = clones
  }

  of(value: unknown, outer?: Path): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (value instanceof Date || value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) {
      this.isMutable = true
      return this.#clones ? structuredClone(value) : value
    }
    if (!isPlain(value) || isOnPath(outer, value)) return value
    const copy = Array.isArray(value) ? value.slice() : { ...value }
    for (const key in copy) {
      const inner = (copy as Record<string, unknown>)[key]
      if (typeof inner !== 'object' || inner === null) continue
      ;(copy as Record<string, unknown>)[key] = this.of(inner, { value, outer })
    }
    return Object.freeze(copy)
  }
}

function isOnPath(path: Path | undefined, value: object): boolean {
  for (let at = path; at !== undefined; at = at.outer) if (at.value === value) return true
  return false
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null
}
