import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { parserOf } from '../../agent/tools/parse-schema.ts'
import type { Json, JsonObject } from '../../state/json.ts'
import { safeParser } from './safe-schema.ts'

const fits = (schema: JsonObject, value: Json): boolean => 'value' in safeParser(schema)(value)

test('types, properties, limits and their combinations are checked', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2 },
      size: { anyOf: [{ type: 'number', maximum: 3 }, { enum: ['all'] }] },
      list: { type: 'array', items: { type: 'boolean' }, maxItems: 2 },
    },
    required: ['name'],
    additionalProperties: false,
  }
  const values: readonly Json[] = [
    { name: 'ab', size: 3, list: [true] },
    { name: 'ab', size: 'all' },
    { name: 'a' },
    { size: 1 },
    { name: 'ab', size: 4 },
    { name: 'ab', list: [1] },
    { name: 'ab', list: [true, true, true] },
    { name: 'ab', more: 1 },
  ]
  assert.deepEqual(
    values.map((value) => fits(schema, value)),
    [true, true, false, false, false, false, false, false],
  )
})

test('a property may have the name of a keyword', () => {
  const schema = { type: 'object', properties: { pattern: { type: 'number' }, not: { type: 'number' } } }
  assert.deepEqual([fits(schema, { pattern: 1, not: 1 }), fits(schema, { pattern: 'x' })], [true, false])
})

test('leaving a keyword out accepts more values, never fewer', () => {
  const pattern = { type: 'string', pattern: '^a' }
  assert.ok(fits({ type: 'object', properties: { a: { not: pattern } } }, { a: 'abc' }))
  assert.ok(fits({ oneOf: [pattern, { type: 'string' }] }, 'b'))
  assert.ok(fits({ patternProperties: { '^x': {} }, additionalProperties: false }, { x1: 1 }))
  assert.ok(fits({ $ref: '#/$defs/none' }, 'anything'))
})

test('every value that fits a schema fits its safe part', () => {
  const leaf: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject>(
    { type: 'string' },
    { type: 'number', minimum: 0 },
    { type: 'string', pattern: '^[ab]+$' },
    { enum: ['a', 1, null] },
    { format: 'date' },
    {},
  )
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.record({ not: tie('schema') }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ type: fc.constant('object'), properties: fc.record({ a: tie('schema') }) }),
      fc.record({ type: fc.constant('array'), items: tie('schema') }),
      fc.record({ patternProperties: fc.record({ '^a': tie('schema') }), additionalProperties: tie('schema') }),
    ),
  }))
  const value = fc.oneof(
    fc.constantFrom<Json>('a', 'ab', 'c', 1, -1, null, true, [], ['a'], [1], {}, { a: 'a' }, { a: 1 }, { b: 'x' }),
  )
  fc.assert(
    fc.property(schema, value, (made, given) => {
      const complete = parserOf(made)(given) as object
      return !('value' in complete) || fits(made, given)
    }),
  )
})

test('invalid schemas and endlessly nested ones are rejected', () => {
  const nested = (levels: number): Json => (levels === 0 ? {} : { not: nested(levels - 1) })
  assert.throws(() => safeParser({ properties: 5 }), /its "properties" is not an object/)
  assert.throws(() => safeParser({ allOf: {} }), /its "allOf" is not a list/)
  assert.throws(() => safeParser({ items: 'x' }), /"x" is not a schema/)
  assert.throws(() => safeParser(nested(100) as JsonObject), /nested more than 64 levels/)
})
