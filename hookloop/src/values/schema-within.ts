import { isJsonObject, type Json, type JsonObject } from './json.ts'

/**
 * The JSON Schema of an object with a property that fits a schema, and other properties. References into the schema are adjusted,
 * and its definitions move to the top level, where every provider supports them.
 */
export function schemaWithin(schema: JsonObject, key: string, others: JsonObject = {}): JsonObject {
  const { $schema: _dialect, $defs, definitions, ...rest } = schema
  const object = {
    type: 'object',
    properties: { [key]: rest, ...others },
    required: [key],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  }
  return adjustRefs(object, `#/properties/${key}`) as JsonObject
}

function adjustRefs(schema: Json, place: string): Json {
  if (Array.isArray(schema)) return schema.map((each: Json) => adjustRefs(each, place))
  if (!isJsonObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const isPointer = key === '$ref' && typeof value === 'string' && /^#(?!\/(\$defs|definitions)\/)/.test(value)
      return [key, isPointer ? `${place}${value.slice(1)}` : adjustRefs(value, place)]
    }),
  )
}
