import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { tool } from '../agent/tool.ts'
import { jsonSchemaValidator } from './json-schema.ts'
import type { Json, JsonObject } from './json.ts'

/** The messages of what does not fit. */
function problems(schema: JsonObject, value: Json): readonly string[] {
  return jsonSchemaValidator(schema)(value).map(({ message }) => message)
}

const SLOW = '^(a+)+$'
const hostile = `${'a'.repeat(100_000)}!`

const slow: { readonly [what: string]: readonly [schema: JsonObject, value: Json] } = {
  pattern: [{ type: 'string', pattern: SLOW }, hostile],
  'pattern in a property': [{ properties: { a: { items: { pattern: SLOW } } } }, { a: [hostile] }],
  'pattern behind a reference': [{ $ref: '#/$defs/x', $defs: { x: { pattern: SLOW } } }, hostile],
  'pattern beside a format': [{ pattern: SLOW, format: 'date' }, hostile],
  'pattern inside of anyOf': [{ anyOf: [{ pattern: SLOW }, { type: 'number' }] }, hostile],
  patternProperties: [{ patternProperties: { [SLOW]: false }, additionalProperties: false }, { [hostile]: 1 }],
  propertyNames: [{ propertyNames: { pattern: SLOW } }, { [hostile]: 1 }],
  'format url': [{ format: 'url' }, `http://${'a'.repeat(100_000)}!`],
  'format uri': [{ format: 'uri' }, `http:/${'/a'.repeat(100_000)}\n`],
  'format email': [{ format: 'email' }, `a@${'a.'.repeat(100_000)}`],
}

for (const [what, [schema, value]] of Object.entries(slow)) {
  test(`no value can make ${what} of a JSON Schema block the process`, () => {
    assert.ok(problems(schema, value).length > 0)
  })
}

test('a problem names the pattern and the format as the schema has them', () => {
  assert.deepEqual(problems({ pattern: '^b' }, 'a'), ['String does not match pattern "^b".'])
  assert.deepEqual(problems({ format: 'date' }, 'a'), ['String does not match format "date".'])
})

test('a pattern that cannot be checked in linear time is rejected when the tool is made', () => {
  const input = (pattern: string) => ({ type: 'object', properties: { a: { type: 'string', pattern } } })
  for (const pattern of ['^(?!x)', '(a)\\1', '(?<=a)b']) {
    const make = () => tool({ name: 'a', description: 'A.', input: input(pattern), execute: () => 1 })
    assert.throws(make, { code: 'AGENT_INVALID_OPTION', message: /cannot be checked in linear time/ })
  }
})

test('values are valid exactly if the validator without these precautions accepts them', () => {
  const pattern = fc.constantFrom('^a', 'b$', '^[a-c]+$', 'x|y', '\\d', '^.?$')
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => {
    const inner = fc.oneof({ maxDepth: 2 }, fc.constantFrom({}, { type: 'string' }, { pattern: '^a' }), tie('schema'))
    return {
      schema: fc.record(
        {
          type: fc.constantFrom('object', 'string', 'array'),
          pattern: pattern,
          format: fc.constantFrom('date', 'ipv4', 'json-pointer'),
          properties: fc.dictionary(fc.constantFrom('a', 'b', 'x1'), inner, { maxKeys: 2 }),
          patternProperties: fc.dictionary(pattern, inner, { maxKeys: 2 }),
          additionalProperties: fc.boolean(),
          items: inner,
          uniqueItems: fc.boolean(),
          not: inner,
          anyOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
          allOf: fc.array(inner, { minLength: 1, maxLength: 2 }),
          enum: fc.constant([{ pattern: '(?!x)' }, 'a', {}]),
        },
        { requiredKeys: [] },
      ),
    }
  })
  const text = fc.constantFrom('a', 'ab', 'b', 'x1', '7', '', '2026-01-01')
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      text,
      fc.integer({ min: 0, max: 2 }),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(text, tie('value'), { maxKeys: 3 }),
    ),
  }))
  fc.assert(
    fc.property(schema, value, (given, each) => {
      const expected = new Validator(structuredClone(given), '2020-12', false).validate(each).valid
      assert.equal(jsonSchemaValidator(given)(each).length === 0, expected)
    }),
    { numRuns: 2_000 },
  )
})

test('a property is checked completely if it is called like a keyword', () => {
  const text = { type: 'string', pattern: '^a$' }
  for (const name of ['default', 'enum', 'const', 'examples', 'pattern', 'patternProperties', 'properties', '$id']) {
    for (const schema of [
      { properties: { [name]: text } },
      { $ref: '#/$defs/it', $defs: { it: { properties: { [name]: text } } } },
    ]) {
      const validate = jsonSchemaValidator(schema)
      assert.deepEqual([name, validate({ [name]: 'a' }).length, validate({ [name]: 'b' }).length], [name, 0, 1])
    }
  }
})

test('unevaluatedProperties does not see what a schema beside its own has checked', () => {
  const validate = jsonSchemaValidator({ allOf: [{ properties: { a: true } }, { unevaluatedProperties: false }] })
  assert.equal(validate({ a: 1 }).length, 1)
  const own = jsonSchemaValidator({ allOf: [{ properties: { a: true } }], unevaluatedProperties: false })
  assert.deepEqual([own({ a: 1 }).length, own({ b: 1 }).length], [0, 1])
})
