import { isJsonObject, type Json, type JsonObject } from './json.ts'

/** References are replaced by what they refer to, so a small schema can become a large one. */
const MAX_PARTS = 5_000
const MAX_SAME_REFERENCE = 3

/**
 * Keywords without schemas in them. Each only excludes values, so leaving others out accepts more. `pattern` and `format` are
 * not among them, because expressions can be as expensive as a text is long, nor is `uniqueItems`, which takes quadratic time.
 */
const plainKeywords = [
  'type enum const required minProperties maxProperties minItems maxItems minLength maxLength',
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf',
].flatMap((keywords) => keywords.split(' '))

/** The part of a schema that takes limited time to check. It accepts every value that the schema accepts. */
export function checkedPart(root: JsonObject): JsonObject {
  let parts = 0
  const partOf = (schema: Json, references: readonly string[]): JsonObject => {
    if (schema === false) return { enum: [] }
    if (!isJsonObject(schema) || ++parts > MAX_PARTS) return {}
    const inner = (each: Json): JsonObject => partOf(each, references)
    const { $ref, properties, patternProperties, additionalProperties, prefixItems, items, allOf, anyOf, oneOf } =
      schema
    const all: JsonObject[] = Array.isArray(allOf) ? allOf.map(inner) : []
    if (Array.isArray(anyOf)) all.push({ anyOf: anyOf.map(inner) })
    if (Array.isArray(oneOf)) all.push({ anyOf: oneOf.map(inner) })
    if (typeof $ref === 'string' && references.filter((each) => each === $ref).length < MAX_SAME_REFERENCE) {
      all.push(partOf(targetOf($ref, root), [...references, $ref]))
    }
    return {
      ...Object.fromEntries(plainKeywords.flatMap((key) => (Object.hasOwn(schema, key) ? [[key, schema[key]!]] : []))),
      ...(isJsonObject(properties) && { properties: mapped(properties, inner) }),
      ...(additionalProperties !== undefined &&
        patternProperties === undefined && { additionalProperties: inner(additionalProperties) }),
      ...(Array.isArray(prefixItems) && { prefixItems: prefixItems.map(inner) }),
      ...(items !== undefined && { items: Array.isArray(items) ? items.map(inner) : inner(items) }),
      ...(all.length > 0 && { allOf: all }),
    }
  }
  return partOf(root, [])
}

function mapped(schemas: JsonObject, change: (schema: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, change(schema)]))
}

/** What a reference refers to. Only places in the same schema are looked up; everything else accepts all values. */
function targetOf(reference: string, root: JsonObject): Json {
  let at: Json | undefined = root
  for (const key of reference.split('/').slice(1)) {
    const name = key.replaceAll('~1', '/').replaceAll('~0', '~')
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined
  }
  return reference === '#' || reference.startsWith('#/') ? (at ?? true) : true
}
