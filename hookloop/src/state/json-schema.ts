import type { Json, JsonObject } from './json.ts'
import { linearSchema, mentions, namesIn, plainMessage } from './linear-schema.ts'
import { loadJsonSchema } from './packages.ts'

/** What does not fit a schema: where in the value, and why. */
export type SchemaProblem = { readonly path: readonly string[]; readonly message: string }

const noNames: ReadonlySet<string> = new Set()

/**
 * Returns a function that lists what does not fit a JSON Schema (draft 2020-12). The list is empty when the value is valid.
 * It runs in linear time, whatever the value; throws for a pattern for which that is not possible. The validator is loaded
 * when it is needed first, so that programs without plain JSON Schema do not load it.
 */
export function jsonSchemaValidator(schema: JsonObject): (value: Json) => readonly SchemaProblem[] {
  const isByName = mentions(schema, 'patternProperties')
  const hasUnique = mentions(schema, 'uniqueItems')
  const cached = new Map<boolean, Validator>()
  const check = (value: Json, isUnique: boolean): readonly SchemaProblem[] => {
    const how = { names: isByName ? namesIn(value) : noNames, isUnique }
    const validator = cached.get(isUnique) ?? makeValidator(schema, how)
    if (!isByName) cached.set(isUnique, validator)
    return problemsOf(validator, value)
  }
  if (isByName || mentions(schema, 'pattern')) makeValidator(schema, { names: noNames, isUnique: false }) // may throw
  return (value) => {
    // The length of a list is checked before its items are compared.
    const problems = hasUnique ? check(value, false) : []
    return problems.length > 0 ? problems : check(value, true)
  }
}

type Validator = import('@cfworker/json-schema').Validator

function makeValidator(schema: JsonObject, how: Parameters<typeof linearSchema>[2]): Validator {
  const { Validator, format } = loadJsonSchema()
  const made = linearSchema(schema, format, how)
  return new Validator(made, '2020-12', false) // it writes into the schema it is given
}

function problemsOf(validator: Validator, value: Json): readonly SchemaProblem[] {
  const { valid, errors } = validator.validate(value)
  if (valid) return []
  // The outer errors only repeat that something inside did not fit.
  const inner = errors.filter(({ keyword }) => keyword !== 'properties' && keyword !== 'items')
  return inner.map(({ instanceLocation, error }) => ({
    path: fromPointer(instanceLocation),
    message: plainMessage(error),
  }))
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
