import { untrustedParserOf, type Parsed } from '../../agent/tools/parse-schema.ts'
import { jsonSchemaValidator } from '../../state/json-schema.ts'
import type { Json, JsonObject } from '../../state/json.ts'

export type SafeParser = (value: Json) => Parsed

/** The parser of a schema that a server has sent. Throws if the schema is not valid: a provider would reject the request. */
export function safeParser(schema: JsonObject): SafeParser {
  const [problem] = problemsOf(schema)
  if (problem !== undefined)
    throw new TypeError(`its schema is invalid at "${problem.path.join('.')}": ${problem.message}`)
  return untrustedParserOf(schema)
}

const schema = { $ref: '#/$defs/schema' }
const schemas = { type: 'array', items: schema }
const named = { type: 'object', additionalProperties: schema }
const number = { type: 'number' }
const count = { type: 'number', minimum: 0 }
const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

/** The JSON Schema of the keywords that are checked. */
const problemsOf = jsonSchemaValidator({
  ...schema,
  $defs: {
    schema: {
      type: ['object', 'boolean'],
      properties: {
        type: { anyOf: [{ enum: types }, { type: 'array', items: { enum: types } }] },
        enum: { type: 'array' },
        required: { type: 'array', items: { type: 'string' } },
        properties: named,
        additionalProperties: schema,
        items: { anyOf: [schema, schemas] },
        prefixItems: schemas,
        allOf: schemas,
        anyOf: schemas,
        oneOf: schemas,
        not: schema,
        minimum: number,
        maximum: number,
        exclusiveMinimum: number,
        exclusiveMaximum: number,
        multipleOf: { type: 'number', exclusiveMinimum: 0 },
        minLength: count,
        maxLength: count,
        minItems: count,
        maxItems: count,
        minProperties: count,
        maxProperties: count,
      },
    },
  },
})
