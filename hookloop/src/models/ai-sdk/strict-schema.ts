import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'

/** The keywords that OpenAI takes by the letter. Anything else makes a schema a wish. */
const taken: ReadonlySet<string> = new Set(
  (
    'type enum const title description properties required additionalProperties items anyOf $ref ' +
    '$defs definitions format pattern minItems maxItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf'
  ).split(' '),
)

/**
 * Whether OpenAI can hold a model to a schema by its letter: it has no keyword that is not taken, every object says all
 * that may be in it, and everything in it is required. Others are sent as a wish, and the answer is checked here anyway.
 */
export function isStrictSchema(schema: Json): boolean {
  if (!isJsonObject(schema)) return true
  if (!Object.keys(schema).every((key) => taken.has(key)) || !isClosed(schema)) return false
  const { properties, $defs, definitions, items, anyOf } = schema
  const inner = [properties, $defs, definitions].flatMap((each) => (isJsonObject(each) ? Object.values(each) : []))
  return [...inner, ...(items === undefined ? [] : [items]), ...(Array.isArray(anyOf) ? anyOf : [])].every(
    isStrictSchema,
  )
}

function isClosed({ type, properties = {}, required = [], additionalProperties }: JsonObject): boolean {
  if (type !== 'object' && !(Array.isArray(type) && type.includes('object'))) return true
  const names = isJsonObject(properties) ? Object.keys(properties) : []
  return additionalProperties === false && names.every((name) => Array.isArray(required) && required.includes(name))
}
