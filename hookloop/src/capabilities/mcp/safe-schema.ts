import { parserOf, type Parsed } from '../../agent/tools/parse-schema.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'

/**
 * A parser for an untrusted schema. A reference in it can expand without end, and a pattern can take exponential time. So
 * only the keywords that run in bounded time are checked here, and the server checks the rest. Throws if the schema is
 * not valid.
 */
export function safeParser(schema: JsonObject): SafeParser {
  return parserOf(safePart(schema, 0).schema as JsonObject) as SafeParser // plain JSON Schema is parsed synchronously
}

export type SafeParser = (value: Json) => Parsed

/** The safe part of a schema or of the value of a keyword, and whether it is complete. A part accepts at least all that the complete schema accepts. */
type SafePart = { readonly schema: Json; readonly complete: boolean }

const MAX_DEPTH = 64
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

function safePart(schema: Json, depth: number): SafePart {
  if (depth > MAX_DEPTH) throw new TypeError(`it is nested more than ${MAX_DEPTH} levels deep`)
  if (typeof schema === 'boolean') return { schema, complete: true }
  if (!isJsonObject(schema)) throw new TypeError(`${JSON.stringify(schema).slice(0, 40)} is not a schema`)
  const safe: { [keyword: string]: Json } = {}
  let complete = true
  for (const [keyword, value] of Object.entries(schema)) {
    const part = keywords[keyword]?.(keyword, value, depth)
    if (part === undefined) {
      complete &&= ignored.has(keyword)
    } else {
      safe[keyword] = part.schema
      complete &&= part.complete
    }
  }
  // Without the patterns it is unknown which names are additional.
  if ('patternProperties' in schema) delete safe['additionalProperties']
  return { schema: safe, complete }
}

/** The safe part of a keyword's value; undefined if the keyword is left out. */
type Keyword = (keyword: string, value: Json, depth: number) => SafePart | undefined

/** Keywords without an effect on validation. */
const ignored = new Set(['title', 'description', '$comment', 'default', 'examples', '$schema', '$defs', 'definitions'])

const unchanged =
  (fits: (value: Json) => boolean, what: string): Keyword =>
  (keyword, value) => {
    if (!fits(value)) throw new TypeError(`its "${keyword}" is not ${what}`)
    return { schema: value, complete: true }
  }

const inner: Keyword = (_keyword, value, depth) => safePart(value, depth + 1)

const byName: Keyword = (keyword, value, depth) => {
  if (!isJsonObject(value)) throw new TypeError(`its "${keyword}" is not an object`)
  const parts = Object.entries(value).map(([name, each]) => [name, safePart(each, depth + 1)] as const)
  return {
    schema: Object.fromEntries(parts.map(([name, { schema }]) => [name, schema])),
    complete: parts.every(([, part]) => part.complete),
  }
}

const inOrder: Keyword = (keyword, value, depth) => {
  if (!Array.isArray(value)) throw new TypeError(`its "${keyword}" is not a list`)
  const parts = (value as readonly Json[]).map((each) => safePart(each, depth + 1))
  return { schema: parts.map(({ schema }) => schema), complete: parts.every(({ complete }) => complete) }
}

/** For keywords where accepting more inside would mean accepting less outside. */
const onlyComplete =
  (form: Keyword): Keyword =>
  (...given) => {
    const part = form(...given)
    return part?.complete === true ? part : undefined
  }

const number = unchanged((value) => typeof value === 'number', 'a number')
const count = unchanged((value) => typeof value === 'number' && value >= 0, 'a number from 0 up')
const list = unchanged((value) => Array.isArray(value), 'a list')
const isTypes = (value: Json): boolean =>
  Array.isArray(value) ? value.every(isTypes) : typeof value === 'string' && types.includes(value)

const keywords: { readonly [keyword: string]: Keyword | undefined } = Object.assign(Object.create(null), {
  type: unchanged(isTypes, `one of ${types.join(', ')}`),
  enum: list,
  const: unchanged(() => true, ''),
  required: unchanged(
    (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
    'a list of names',
  ),
  properties: byName,
  additionalProperties: inner,
  items: (keyword, value, depth) => (Array.isArray(value) ? undefined : inner(keyword, value, depth)),
  prefixItems: inOrder,
  allOf: inOrder,
  anyOf: inOrder,
  oneOf: onlyComplete(inOrder),
  not: onlyComplete(inner),
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: unchanged((value) => typeof value === 'number' && value > 0, 'a positive number'),
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
} satisfies { [keyword: string]: Keyword })
