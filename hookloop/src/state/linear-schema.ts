import { isJsonObject, type Json, type JsonObject } from './json.ts'
import { linearTestOf } from './linear-pattern.ts'

type Formats = { [name: string]: (text: string) => boolean }
type Schema = { [keyword: string]: Json }

/** Keywords whose values are schemas by name, data, and schemas that need not fit. */
const named = new Set(['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies', 'patternProperties'])
const data = new Set(['enum', 'const', 'default', 'examples'])
const optional = new Set(['not', 'if', 'anyOf', 'oneOf'])
const PREFIX = 'hookloop:'
/** Comparing all items of a longer list with each other takes too long. */
const MAX_UNIQUE_ITEMS = 2_000
/** Longer texts fail a format, whose test may take quadratic time. */
const MAX_FORMAT_CHARS = 4_096

/**
 * The validator runs patterns with backtracking, where a text of 35 characters can take a minute. This is an equivalent schema
 * without patterns: `pattern` becomes a format that runs in linear time, and `patternProperties` the properties of those
 * `names` that match. Throws if a pattern cannot be run in linear time.
 */
export function linearSchema(schema: JsonObject, formats: Formats, how: How): JsonObject {
  return new Linear(formats, how).schema(schema) as JsonObject
}

type How = {
  /** The names of properties in the value. */
  readonly names: ReadonlySet<string>
  /** Whether the items of lists are compared. Otherwise only the length of such a list is checked. */
  readonly isUnique: boolean
}

class Linear {
  readonly #formats: Formats
  readonly #how: How

  constructor(formats: Formats, how: How) {
    this.#formats = formats
    this.#how = how
  }

  /** `isRequired` is false where a value may be valid although it does not fit the schema, as inside of `not`. */
  schema(given: Json, isRequired = true): Json {
    if (Array.isArray(given)) return given.map((each: Json) => this.schema(each, isRequired))
    if (!isJsonObject(given)) return given
    const made: Schema = {}
    for (const [keyword, value] of Object.entries(given)) {
      if (data.has(keyword)) made[keyword] = value
      else if (named.has(keyword) && isJsonObject(value)) made[keyword] = this.#byName(value, isRequired)
      else made[keyword] = this.schema(value, isRequired && !optional.has(keyword))
    }
    this.#replaceFormat(made)
    this.#replacePatternProperties(made)
    if (made['uniqueItems'] === true && !this.#how.isUnique && isRequired) {
      delete made['uniqueItems']
      made['maxItems'] = Math.min(Number(made['maxItems'] ?? Infinity), MAX_UNIQUE_ITEMS)
    }
    return made
  }

  #byName(schemas: JsonObject, isRequired: boolean): JsonObject {
    return Object.fromEntries(Object.entries(schemas).map(([name, each]) => [name, this.schema(each, isRequired)]))
  }

  #replaceFormat(schema: Schema): void {
    const { pattern, format } = schema
    const formats = [
      ...(typeof format === 'string' ? [this.#safeFormat(format)] : []),
      ...(typeof pattern === 'string' ? [this.#patternFormat(pattern)] : []),
    ]
    if (typeof pattern === 'string') delete schema['pattern']
    const [first, ...others] = formats
    if (first !== undefined) schema['format'] = first
    if (others.length > 0)
      both(
        schema,
        others.map((each) => ({ format: each })),
      )
  }

  #patternFormat(pattern: string): string {
    const name = `${PREFIX}pattern:${pattern}`
    this.#formats[name] ??= linearTestOf(pattern)
    return name
  }

  #safeFormat(format: string): string {
    const test = Object.hasOwn(this.#formats, format) ? this.#formats[format]! : undefined
    if (test === undefined) return format
    const name = `${PREFIX}format:${format}`
    const isUrl = (text: string): boolean => /^(?:https?|ftp):\/\//i.test(text) && URL.canParse(text)
    const safe = format === 'url' ? isUrl : test
    this.#formats[name] ??= (text) => text.length <= MAX_FORMAT_CHARS && safe(text)
    return name
  }

  #replacePatternProperties(schema: Schema): void {
    const { patternProperties, properties } = schema
    if (!isJsonObject(patternProperties)) return
    const made: Schema = { ...(isJsonObject(properties) && properties) }
    for (const [pattern, each] of Object.entries(patternProperties)) {
      const matches = linearTestOf(pattern)
      for (const name of this.#how.names) {
        if (matches(name)) made[name] = Object.hasOwn(made, name) ? { allOf: [made[name]!, each] } : each
      }
    }
    delete schema['patternProperties']
    schema['properties'] = made
  }
}

/** Adds schemas that must fit as well. */
function both(schema: Schema, others: readonly JsonObject[]): void {
  schema['allOf'] = [...(Array.isArray(schema['allOf']) ? (schema['allOf'] as Json[]) : []), ...others]
}

/** Whether the schema has a keyword, at any depth. It may also be the name of a property. */
export function mentions(schema: Json, keyword: string): boolean {
  if (Array.isArray(schema)) return schema.some((each: Json) => mentions(each, keyword))
  if (!isJsonObject(schema)) return false
  return Object.hasOwn(schema, keyword) || Object.values(schema).some((each) => mentions(each, keyword))
}

/** The names of all properties of a value, at any depth. */
export function namesIn(value: Json, found = new Set<string>()): ReadonlySet<string> {
  if (Array.isArray(value)) for (const each of value as readonly Json[]) namesIn(each, found)
  else if (isJsonObject(value)) {
    for (const [name, each] of Object.entries(value)) {
      found.add(name)
      namesIn(each, found)
    }
  }
  return found
}

/** The message of a problem, without the names of this file. */
export function plainMessage(message: string): string {
  const [, pattern] = /^String does not match format "hookloop:pattern:(.*)"\.$/s.exec(message) ?? []
  return pattern === undefined
    ? message.replace(`"${PREFIX}format:`, '"')
    : `String does not match pattern "${pattern}".`
}
