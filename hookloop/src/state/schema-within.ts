import { isJsonObject, type Json, type JsonObject } from './json.ts'

/**
 * The JSON Schema of an object that has what fits a schema under a key, beside other properties. What points into the
 * schema points there now; its definitions move to the top, which is the one place where every provider finds them.
 */
export function schemaWithin(schema: JsonObject, key: string, others: JsonObject = {}): JsonObject {
  const { $schema: _dialect, $defs, definitions, ...rest } = schema
  const whole = {
    type: 'object',
    properties: { [key]: rest, ...others },
    required: [key],
    additionalProperties: false,
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  }
  return pointingTo(whole, `#/properties/${key}`) as JsonObject
}

function pointingTo(schema: Json, place: string): Json {
  if (Array.isArray(schema)) return schema.map((each: Json) => pointingTo(each, place))
  if (!isJsonObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const isPointer = key === '$ref' && typeof value === 'string' && /^#(?!\/(\$defs|definitions)\/)/.test(value)
      return [key, isPointer ? `${place}${value.slice(1)}` : pointingTo(value, place)]
    }),
  )
}
