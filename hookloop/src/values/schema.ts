import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import type { JsonObject } from './json.ts'

/** A Standard Schema that can be converted to JSON Schema: Zod 4, ArkType, Valibot with `toStandardJsonSchema`. */
export type Schema<I = unknown, O = unknown> = StandardSchemaV1<I, O> & StandardJSONSchemaV1<I, O>

/** The input and output types of a schema. For plain JSON Schema both are objects. */
export type InputOf<S> = S extends Schema<infer I> ? I : JsonObject
export type OutputOf<S> = S extends Schema<unknown, infer O> ? O : JsonObject

/** The part of a tool that a hook needs to match it. */
export type ToolRef<I = unknown, O = unknown> = { readonly name: string; readonly input: Schema<I, O> | JsonObject }

/** The JSON Schema of an object with these properties and no others. Those that are not listed as required are optional. */
export function objectSchema(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false }
}
