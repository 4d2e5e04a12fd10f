import { createRequire } from 'node:module'
import { canonicalText, type Json, type JsonObject } from './json.ts'
import { checkedPart } from './untrusted-schema.ts'

/** What does not fit a schema: where in the value, and why. */
export type SchemaProblem = { readonly path: readonly string[]; readonly message: string }
export type SchemaValidator = (value: Json) => readonly SchemaProblem[]

const require = createRequire(import.meta.url)
const MAX_PROBLEMS = 100
const MAX_MESSAGE = 300
/** The length of an untrusted schema times the length of a value. Checks take about as long as this product is large. */
const MAX_UNTRUSTED = 100_000_000

/** Returns a function that lists what does not fit a JSON Schema of the program. The list is empty when the value is valid. */
export function jsonSchemaValidator(schema: JsonObject): SchemaValidator {
  return validatorOf(schema, { onlyFirst: false })
}

/**
 * The same for a schema that another program has sent, in limited time: only a part of it is checked, so a value may be valid
 * that the complete schema rejects, but never the other way round. A value that would take too long is not checked.
 */
export function untrustedValidator(schema: JsonObject): SchemaValidator {
  const part = checkedPart(schema)
  const length = canonicalText(part).length
  const validate = validatorOf(part, { onlyFirst: true })
  return (value) => (length * canonicalText(value).length > MAX_UNTRUSTED ? [] : validate(value))
}

function validatorOf(schema: JsonObject, { onlyFirst }: { readonly onlyFirst: boolean }): SchemaValidator {
  const { Validator } = require('@cfworker/json-schema') as typeof import('@cfworker/json-schema') // on first use
  const own = JSON.parse(JSON.stringify(schema)) as object // the library adds properties to it
  const validator = new Validator(own, '2020-12', onlyFirst)
  return (value) => {
    const inner = validator.validate(value).errors.filter(({ keyword }) => !outerKeywords.has(keyword))
    return inner.slice(0, MAX_PROBLEMS).map(({ instanceLocation, keyword, error }) => ({
      path: instanceLocation.split('/').slice(1).map(unescaped),
      message: keyword === 'false' ? 'Nothing is allowed here.' : error.slice(0, MAX_MESSAGE).toWellFormed(),
    }))
  }
}

/** Keywords whose errors only say that there is another one inside. */
const outerKeywords = new Set(
  [
    '$ref allOf if properties patternProperties additionalProperties unevaluatedProperties',
    'items prefixItems additionalItems unevaluatedItems',
  ].flatMap((keywords) => keywords.split(' ')),
)

function unescaped(key: string): string {
  return decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
}
