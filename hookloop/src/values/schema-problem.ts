import { jsonSchemaValidator, type SchemaValidator } from './json-schema.ts'
import { isJsonObject, type Json, type JsonObject } from './json.ts'
import { nearestName } from './nearest-name.ts'

const schema = { $ref: '#/$defs/schema' }
const schemas = { type: 'array', items: schema }
const named = { type: 'object', additionalProperties: schema }
const text = { type: 'string' }
const number = { type: 'number' }
const count = { type: 'number', minimum: 0 }
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

/** The keywords that decide what fits, with the JSON Schema of their values. */
const keywords: { readonly [keyword: string]: JsonObject } = {
  type: { anyOf: [{ enum: types }, { type: 'array', items: { enum: types } }] },
  enum: { type: 'array' },
  const: {},
  $ref: text,
  $dynamicRef: text,
  required: { type: 'array', items: text },
  properties: named,
  patternProperties: named,
  additionalProperties: schema,
  unevaluatedProperties: schema,
  propertyNames: schema,
  dependentRequired: { type: 'object' },
  dependentSchemas: named,
  dependencies: { type: 'object' },
  items: { anyOf: [schema, schemas] },
  prefixItems: schemas,
  additionalItems: schema,
  unevaluatedItems: schema,
  contains: schema,
  minContains: count,
  maxContains: count,
  uniqueItems: { type: 'boolean' },
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  not: schema,
  ...Object.fromEntries(['if', 'then', 'else'].map((keyword) => [keyword, schema])), // no object with `then`
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: { type: 'number', exclusiveMinimum: 0 },
  pattern: text,
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
}

const metaSchema = { ...schema, $defs: { schema: { type: ['object', 'boolean'], properties: keywords } } }
/** Made when it is first used: the validator is a part of the package that is loaded later. */
let validate: SchemaValidator | undefined

/** Why a JSON Schema is not valid: a keyword has an impossible value. Providers reject requests with such a schema. */
export function invalidKeyword(value: JsonObject): string | undefined {
  const problems = (validate ??= jsonSchemaValidator(metaSchema))(value).slice(0, 3)
  if (problems.length === 0) return undefined
  const messages = new Set(problems.map(({ message }) => message))
  return `its schema is invalid at "${problems.at(-1)!.path.join('.')}": ${[...messages].join(' ')}`
}

/** Why a JSON Schema does not check what it seems to: a keyword has a typo. Keywords of other programs are allowed. */
export function keywordTypo(value: Json): string | undefined {
  if (!isJsonObject(value)) return undefined
  for (const [key, inner] of Object.entries(value)) {
    if (!Object.hasOwn(keywords, key) && !annotations.test(key)) {
      const near = key === 'property' ? 'properties' : nearestName(key, long)
      if (near !== undefined) return `"${key}" is not a keyword of JSON Schema; did you mean "${near}"?`
    }
    const problem = schemasAt(key, inner)
      .map(keywordTypo)
      .find((each) => each !== undefined)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Almost every short word is similar to a short keyword, such as "note" to "not". */
const long = Object.keys(keywords).filter((keyword) => keyword.length > 3)

/** The schemas in the value of a keyword. */
function schemasAt(key: string, value: Json): readonly Json[] {
  const type = key === '$defs' || key === 'definitions' ? named : keywords[key]
  if (type === named) return isJsonObject(value) ? Object.values(value) : []
  return type === schema || type === schemas || key === 'items' ? [value].flat() : []
}

/** Keywords that only describe, and whose value may be anything. */
const annotations =
  /^(?:\$|x-|(?:default|examples?|deprecated|readOnly|writeOnly|nullable|format|contentEncoding|contentMediaType|contentSchema|definitions)$)/

/**
 * Why an object is not meant as a JSON Schema: it has fields, but no keyword. By the specification it would accept
 * everything.
 */
export function fieldsProblem(value: object): string | undefined {
  const entries = Object.entries(value)
  if (entries.some(([key]) => Object.hasOwn(keywords, key))) return undefined
  const isText = (key: string, inner: unknown) =>
    (key === 'title' || key === 'description') && typeof inner === 'string'
  const fields = entries.filter(([key, inner]) => !annotations.test(key) && !isText(key, inner))
  if (fields.length === 0) return undefined
  const names = fields.slice(0, 3).map(([key]) => JSON.stringify(key.slice(0, 40)))
  return `${names.join(', ')} ${fields.length === 1 ? 'is not a keyword' : 'are not keywords'} of JSON Schema; write { type: 'object', properties: { … } } or z.object({ … })`
}
