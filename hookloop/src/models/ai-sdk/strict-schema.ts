import { isJsonObject, type Json } from '../../data/json.ts'

/**
 * Whether a schema is of the kind that OpenAI can hold a model to by its letter: every object says all that may be in
 * it, and everything in it is required. Others are sent as a wish, and the answer is checked here anyway.
 */
export function isStrictSchema(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.every(isStrictSchema)
  if (!isJsonObject(schema)) return true
  return isClosed(schema) && Object.values(schema).every(isStrictSchema)
}

function isClosed(schema: { readonly [key: string]: Json }): boolean {
  if (schema['type'] !== 'object') return true
  const { properties = {}, required = [], additionalProperties } = schema
  const names = isJsonObject(properties) ? Object.keys(properties) : []
  return additionalProperties === false && names.every((name) => Array.isArray(required) && required.includes(name))
}
