import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json, JsonObject } from './json.ts'
import { jsonSchemaValidator } from './json-schema.ts'

function problems(schema: JsonObject, value: Json): readonly string[] {
  return jsonSchemaValidator(schema)(value).map(({ path, message }) => `${path.join(' > ')}: ${message}`)
}

test('problems name the place and what was expected', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      'a/b': { type: 'array', items: { type: 'integer', minimum: 3 } },
      kind: { enum: ['x', 'y'] },
      '%': { anyOf: [{ type: 'null' }, { $ref: '#/$defs/short' }] },
    },
    required: ['c'],
    additionalProperties: false,
    $defs: { short: { type: 'string', maxLength: 2 } },
  }
  assert.deepEqual(problems(schema, { 'a/b': [4, 'x', 2], kind: 'z', '%': 'long', d: 1 }), [
    ': Instance does not have required property "c".',
    'a/b > 1: Instance type "string" is invalid. Expected "integer".',
    'a/b > 2: 2 is less than 3.',
    'kind: Instance does not match any of ["x","y"].',
    '%: Instance does not match any subschemas.',
    '%: Instance type "string" is invalid. Expected "null".',
    '%: String is too long (4 > 2).',
    'd: Nothing is allowed here.',
  ])
})

test('the problems of a value are limited in number and length', () => {
  const [long, many] = ['x'.repeat(10_000), Array.from({ length: 10_000 }, () => 1)]
  const found = problems({ items: { const: long } }, many)
  assert.deepEqual([found.length, found.every((each) => each.length < 400)], [100, true])
})

test('a schema is not changed, so it may be frozen', () => {
  const schema = Object.freeze({ $ref: '#/$defs/a', $defs: Object.freeze({ a: Object.freeze({ type: 'string' }) }) })
  assert.deepEqual([problems(schema, 'a'), problems(schema, 1).length], [[], 1])
})
