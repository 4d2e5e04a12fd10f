import type { Json, JsonObject } from './json.ts'
import { loadJsonSchema } from './packages.ts'

/** What does not fit a schema: where in the value, and why. */
export type SchemaProblem = { readonly path: readonly string[]; readonly message: string }

/**
 * Returns a function that lists what does not fit a JSON Schema (draft 2020-12). The list is empty when the value is valid.
 * The validator is loaded with the first call, so that programs without plain JSON Schema do not load it.
 */
export function jsonSchemaValidator(schema: JsonObject): (value: Json) => readonly SchemaProblem[] {
  let validator: import('@cfworker/json-schema').Validator | undefined
  return (value) => {
    if (validator === undefined) {
      const { Validator } = loadJsonSchema()
      validator = new Validator(structuredClone(schema), '2020-12', false) // it writes into the schema it is given
    }
    const { valid, errors } = validator.validate(value)
    if (valid) return []
    // The outer errors only repeat that something inside did not fit.
    const inner = errors.filter(({ keyword }) => keyword !== 'properties' && keyword !== 'items')
    return inner.map(({ instanceLocation, error }) => ({ path: fromPointer(instanceLocation), message: error }))
  }
}

/** The keys of a JSON pointer such as `#/hooks/0/name`. */
function fromPointer(pointer: string): readonly string[] {
  const keys = pointer.split('/').slice(1)
  return keys.map((key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The JSON Schema of an object with these properties and no others. Those that are not listed as required are optional. */
export function objectSchema(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false }
}
