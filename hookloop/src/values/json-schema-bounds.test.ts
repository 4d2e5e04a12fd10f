import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import type { Json, JsonObject } from './json.ts'
import { jsonSchemaValidator } from './json-schema.ts'

function problems(schema: JsonObject, value: Json): readonly string[] {
  return jsonSchemaValidator(schema)(value).map(({ path, message }) => `${path.join('/')}: ${message}`)
}

test('data of a schema that looks like a pattern is not one', () => {
  assert.deepEqual(problems({ const: { pattern: '(?=a)' }, default: { pattern: '(' } }, { pattern: '(?=a)' }), [])
})

test('equal items of a long array are found in linear time', () => {
  const many = Array.from({ length: 100_000 }, (_, i) => ({ i }))
  assert.deepEqual(problems({ uniqueItems: true }, many), [])
  assert.deepEqual(problems({ uniqueItems: true }, [...many, { i: 7 }]), [': Array has items that are equal.'])
})

test('alternatives that multiply with each level end with an error, not with a blocked process', () => {
  const either = { $ref: '#/$defs/tree' }
  const tree = { anyOf: [{ properties: { a: either } }, { properties: { a: either }, required: ['b'] }] }
  const schema = { $ref: '#/$defs/tree', $defs: { tree } }
  let value: JsonObject = { a: 1, b: 1 }
  for (let depth = 0; depth < 60; depth++) value = { a: value }
  const strict = { ...schema, $defs: { tree: { ...tree, type: 'object' } } }
  assert.throws(() => problems(strict, value), /checks for this value|levels deep/)
})

test('a reference that refers to itself, and a value that is nested too deeply, end with an error', () => {
  assert.throws(() => problems({ $ref: '#' }, 1), /levels deep/)
  let deep: Json = []
  for (let depth = 0; depth < 5_000; depth++) deep = [deep]
  assert.throws(() => problems({ items: { $ref: '#' } }, deep), /levels deep/)
})

test('the problems of a value are limited in number', () => {
  assert.equal(
    problems(
      { items: false },
      Array.from({ length: 10_000 }, () => 1),
    ).length,
    100,
  )
})

test('problems name the place and what was expected', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: { 'a/b': { type: 'array', items: { type: 'integer', minimum: 3 } } },
    required: ['c'],
    additionalProperties: false,
  }
  assert.deepEqual(problems(schema, { 'a/b': [4, 'x', 2], d: 1 }), [
    ': Instance does not have required property "c".',
    'a/b/1: Instance type "string" is invalid. Expected "integer".',
    'a/b/2: 2 is less than 3.',
    'd: Property "d" is not allowed.',
  ])
})

const leaf = fc.oneof(
  fc.constantFrom<JsonObject>(
    { type: 'string' },
    { type: ['integer', 'null'] },
    { type: 'object' },
    { const: { a: [1] } },
    { enum: [1, 'a', null] },
    { minimum: 2 },
    { exclusiveMaximum: 2 },
    { multipleOf: 2 },
    { minLength: 1, maxLength: 2 },
    { pattern: '^a+$' },
    { uniqueItems: true },
    { minItems: 1, maxItems: 2 },
    { required: ['a'] },
    { maxProperties: 1 },
    { dependentRequired: { a: ['b'] } },
    { $ref: '#/$defs/d' },
    { format: 'date' },
  ),
  fc.boolean().map((is) => (is ? {} : { not: {} })),
)
const branches = ['if', 'then', 'else'] as const
const { schema: schemas } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: tie('schema') }),
    fc
      .tuple(tie('schema'), tie('schema'), tie('schema'))
      .map((parts): JsonObject => Object.fromEntries(branches.map((name, at) => [name, parts[at]!]))),
    fc.record({ prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }), items: tie('schema') }),
    fc.record({ contains: tie('schema'), maxContains: fc.constantFrom(1, 2) }),
    fc.record({ properties: fc.record({ a: tie('schema') }), additionalProperties: tie('schema') }),
    fc.record({ patternProperties: fc.record({ '^a': tie('schema') }), additionalProperties: tie('schema') }),
    fc.record({ propertyNames: tie('schema'), dependentSchemas: fc.record({ a: tie('schema') }) }),
    fc.record({ allOf: fc.tuple(tie('schema')), unevaluatedProperties: tie('schema') }),
  ),
}))
const { value: values } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(1, 2, 3.5, 'a', 'aa', 'b', '', null, true, '2026-02-28', '2026-02-30'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'ab'), tie('value'), { maxKeys: 3 }),
  ),
}))

test('the validator agrees with another one on random schemas and values', () => {
  fc.assert(
    fc.property(schemas, values, (schema, value) => {
      const whole = { ...schema, $defs: { d: { type: 'array' } } }
      const other = new Validator(structuredClone(whole), '2020-12').validate(value).valid
      assert.equal(jsonSchemaValidator(whole)(value).length === 0, other)
    }),
    { numRuns: 5_000 },
  )
})
