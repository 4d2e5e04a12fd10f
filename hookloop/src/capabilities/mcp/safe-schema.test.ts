import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as fc from 'fast-check'
import { parserOf } from '../../values/parse-schema.ts'
import type { Json, JsonObject } from '../../values/json.ts'
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
    { required: ['a'] },
    { $ref: '#/$defs/a' },
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
      fc
        .tuple(tie('schema'), tie('schema'), tie('schema'))
        .map((parts): JsonObject => Object.fromEntries(['if', 'then', 'else'].map((name, at) => [name, parts[at]!]))),
      fc.record({ contains: tie('schema'), maxContains: fc.constantFrom(1, 2), unevaluatedItems: tie('schema') }),
      fc.record({ allOf: fc.tuple(tie('schema'), tie('schema')), unevaluatedProperties: tie('schema') }),
    ),
  }))
  const value = fc.oneof(
    fc.constantFrom<Json>('a', 'ab', 'c', 1, -1, null, true, [], ['a'], [1], {}, { a: 'a' }, { a: 1 }, { b: 'x' }),
  )
  fc.assert(
    fc.property(schema, value, (made, given) => {
      const whole = { ...made, $defs: { a: { pattern: '^a' } } }
      const complete = parserOf(whole)(given) as object
      return !('value' in complete) || fits(whole, given)
    }),
    { numRuns: 1_000 },
  )
})

test('invalid schemas and endlessly nested ones are rejected', () => {
  const nested = (levels: number): Json => (levels === 0 ? {} : { not: nested(levels - 1) })
  assert.throws(() => safeParser({ properties: 5 }), /invalid at "properties": .*Expected "object"/)
  assert.throws(() => safeParser({ allOf: {} }), /invalid at "allOf": .*Expected "array"/)
  assert.throws(() => safeParser({ items: 'x' }), /invalid at "items": .*Expected "object", "boolean"/)
  assert.throws(
    () => safeParser({ properties: { a: { type: ['string', 'text'] } } }),
    /"properties.a.type.1": .*\["object"/,
  )
  assert.throws(() => safeParser(nested(1_000) as JsonObject), RangeError)
})

const many = <T>(count: number, each: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => each(i))
const long = many(50_000, () => 1)

/** Schemas of at most 65,536 characters, as a server may send them, with a value. */
const hostile: { readonly [what: string]: readonly [schema: JsonObject, value: Json] } = {
  'a list of thousands of allowed values for thousands of items': [
    { items: { enum: many(10_000, (i) => i) } },
    many(50_000, () => -1),
  ],
  'thousands of required names for thousands of items': [
    { items: { required: many(6_000, (i) => `n${i}`) } },
    many(20_000, () => ({})),
  ],
  'hundreds of conditions for one large value': [{ allOf: many(3_000, () => ({ enum: [1] })) }, long],
  'hundreds of conditions for one long text': [{ allOf: many(3_000, () => ({ minLength: 1 })) }, 'x'.repeat(1_000_000)],
  'hundreds of conditions for many items': [{ items: { allOf: many(5_000, () => ({})) } }, long],
  'items that must differ, hundreds of times': [{ allOf: many(2_000, () => ({ uniqueItems: true })) }, long],
  'a text of thousands of characters that must match, for many items': [
    { items: { const: { a: 'x'.repeat(60_000) } } },
    many(50_000, () => ({ a: 'y' })),
  ],
  'alternatives that multiply with each level': [
    {
      $defs: { tree: { type: 'object', anyOf: many(9, () => ({ properties: { a: { $ref: '#/$defs/tree' } } })) } },
      $ref: '#/$defs/tree',
    },
    many(40, () => 0).reduce<Json>((inner) => ({ a: inner }), 1),
  ],
  'a pattern with exponential time': [{ pattern: '^(a+)+$' }, `${'a'.repeat(50_000)}!`],
  'a pattern that no engine without backtracking knows': [{ pattern: '^(?=(a+))\\1b$' }, 'x'],
  'a pattern of thousands of parts': [{ pattern: `^${'a?'.repeat(20_000)}$` }, 'a'.repeat(100_000)],
  'patterns for names': [
    { patternProperties: Object.fromEntries(many(2_000, (i) => [`(a+)+${i}$`, false])) },
    { [`${'a'.repeat(10_000)}!`]: 1 },
  ],
  'a reference to itself': [{ $ref: '#' }, 1],
  'two references to each other': [
    { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    1,
  ],
  'a reference to another server': [{ type: 'string', $ref: 'https://evil.example/schema.json' }, 'x'],
  'a reference to a file': [{ $ref: 'file:///etc/passwd' }, 1],
  'a reference with an invalid escape': [{ $ref: '#/%' }, 1],
  'a reference of thousands of steps for many items': [
    { items: { $ref: `#${'/a'.repeat(30_000)}` } },
    many(50_000, () => 1),
  ],
}

suite('a schema of a hostile server is checked in limited time:', () => {
  for (const [what, [schema, value]] of Object.entries(hostile)) {
    test(what, () => {
      assert.ok(JSON.stringify(schema).length <= 65_536)
      assert.ok(fits(schema, value), 'what takes too long is left to the server')
    })
  }
})

test('names such as __proto__ are names like others, in a schema and in a value', () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"number"}},"required":["__proto__","toString"]}',
  ) as JsonObject
  const value = (text: string): Json => JSON.parse(text) as Json
  assert.ok(fits(schema, value('{"__proto__":1,"toString":1}')))
  assert.ok(!fits(schema, value('{"__proto__":"x","toString":1}')))
  assert.ok(!fits(schema, value('{"__proto__":1}')), 'an inherited name is not a property of the value')
  assert.ok(!fits(schema, value('{"toString":1}')))
  assert.ok(fits(value('{"__proto__":{"type":"banana"},"constructor":5}') as JsonObject, {}), 'not keywords')
  assert.equal(({} as { type?: unknown }).type, undefined)
})

test('references inside the schema are checked', () => {
  const tree = { type: 'object', properties: { left: { $ref: '#/$defs/tree' }, size: { type: 'number' } } }
  const schema = { $ref: '#/$defs/tree', $defs: { tree } }
  assert.ok(fits(schema, { left: { left: { size: 1 } } }))
  assert.ok(!fits(schema, { left: { left: { size: 'x' } } }))
})
