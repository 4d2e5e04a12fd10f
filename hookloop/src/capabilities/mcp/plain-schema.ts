import { parserOf, type Parsed } from '../../agent/tools/parse-schema.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'

/**
 * A schema of a server is somebody else's program: a reference can unfold without end, and a pattern can take a second
 * per letter. So values are checked here against the plain part of it, in time that is bounded by the size of both, and
 * the server checks the rest. Throws what is wrong with a schema that is none.
 */
export function plainParser(schema: JsonObject): PlainParser {
  return parserOf(plainPart(schema, 0).schema as JsonObject) as PlainParser // plain JSON Schema waits for nothing
}

export type PlainParser = (value: Json) => Parsed

/** What is left of a schema, and whether that is all of it. Less of it lets more through, never less. */
type Plain = { readonly schema: Json; readonly whole: boolean }

const MAX_DEPTH = 64
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

function plainPart(schema: Json, depth: number): Plain {
  if (depth > MAX_DEPTH) throw new TypeError(`it is nested more than ${MAX_DEPTH} levels deep`)
  if (typeof schema === 'boolean') return { schema, whole: true }
  if (!isJsonObject(schema)) throw new TypeError(`${JSON.stringify(schema).slice(0, 40)} stands where a schema must be`)
  const kept: { [keyword: string]: Json } = {}
  let whole = true
  for (const [keyword, value] of Object.entries(schema)) {
    const plain = keywords[keyword]?.(keyword, value, depth)
    if (plain === undefined) {
      whole &&= ignored.has(keyword)
    } else {
      kept[keyword] = plain.value
      whole &&= plain.whole
    }
  }
  // What a name may be called is not known any more, so no name is one too many.
  if ('patternProperties' in schema) delete kept['additionalProperties']
  return { schema: kept, whole }
}

/** What a keyword becomes; nothing, when it cannot be kept. */
type Keyword = (keyword: string, value: Json, depth: number) => { value: Json; whole: boolean } | undefined

/** They say nothing about what fits. */
const ignored = new Set(['title', 'description', '$comment', 'default', 'examples', '$schema', '$defs', 'definitions'])

const exactly =
  (fits: (value: Json) => boolean, what: string): Keyword =>
  (keyword, value) => {
    if (!fits(value)) throw new TypeError(`its "${keyword}" is not ${what}`)
    return { value, whole: true }
  }

const inner: Keyword = (_keyword, value, depth) => {
  const { schema, whole } = plainPart(value, depth + 1)
  return { value: schema, whole }
}

const byName: Keyword = (keyword, value, depth) => {
  if (!isJsonObject(value)) throw new TypeError(`its "${keyword}" is not an object`)
  const parts = Object.entries(value).map(([name, each]) => [name, plainPart(each, depth + 1)] as const)
  return {
    value: Object.fromEntries(parts.map(([name, { schema }]) => [name, schema])),
    whole: parts.every(([, part]) => part.whole),
  }
}

const inOrder: Keyword = (keyword, value, depth) => {
  if (!Array.isArray(value)) throw new TypeError(`its "${keyword}" is not a list`)
  const parts = (value as readonly Json[]).map((each) => plainPart(each, depth + 1))
  return { value: parts.map(({ schema }) => schema), whole: parts.every(({ whole }) => whole) }
}

/** Where letting more through inside would let less through outside, it is all or nothing. */
const onlyWhole =
  (form: Keyword): Keyword =>
  (...given) => {
    const plain = form(...given)
    return plain?.whole === true ? plain : undefined
  }

const number = exactly((value) => typeof value === 'number', 'a number')
const count = exactly((value) => typeof value === 'number' && value >= 0, 'a number from 0 up')
const list = exactly((value) => Array.isArray(value), 'a list')
const isTypes = (value: Json): boolean =>
  Array.isArray(value) ? value.every(isTypes) : typeof value === 'string' && types.includes(value)

const keywords: { readonly [keyword: string]: Keyword | undefined } = Object.assign(Object.create(null), {
  type: exactly(isTypes, `one of ${types.join(', ')}`),
  enum: list,
  const: exactly(() => true, ''),
  required: exactly(
    (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
    'a list of names',
  ),
  properties: byName,
  additionalProperties: inner,
  items: (keyword, value, depth) => (Array.isArray(value) ? undefined : inner(keyword, value, depth)),
  prefixItems: inOrder,
  allOf: inOrder,
  anyOf: inOrder,
  oneOf: onlyWhole(inOrder),
  not: onlyWhole(inner),
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: exactly((value) => typeof value === 'number' && value > 0, 'a positive number'),
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
} satisfies { [keyword: string]: Keyword })
