import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import fc from 'fast-check'
import * as v from 'valibot'
import * as z from 'zod'
import { tool } from '../agent/tool.ts'
import { isJsonObject, parseExactly, toJson, type Json, type JsonObject } from '../../values/json.ts'
import type { Schema } from '../../values/schema.ts'
import { answerShape, readJson } from './answer-shape.ts'

/** Whether this answer is valid for the schema that is sent to the model. */
async function isShown(schema: Schema | JsonObject, value: Json): Promise<boolean> {
  const { jsonSchema } = answerShape(schema)
  const taker = tool({ name: 'take', description: 'Takes.', input: jsonSchema, execute: () => '' })
  return 'value' in (await taker.parse(value))
}

// ── the schema that is sent to a model

const flat = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }

test('an object schema is sent as it is, without additional properties', () => {
  const schemas: readonly (Schema | JsonObject)[] = [
    z.object({ n: z.number() }),
    type({ n: 'number' }),
    toStandardJsonSchema(v.object({ n: v.number() })),
    flat,
  ]
  for (const schema of schemas) {
    assert.deepEqual(answerShape(schema).jsonSchema, { ...flat, additionalProperties: false })
  }
})

test('nested objects, arrays and unions are sent without additional properties as well', () => {
  const inner = z.object({ n: z.number() })
  const { jsonSchema } = answerShape(z.object({ a: inner, b: z.array(inner), c: z.union([inner, z.null()]) }))
  assert.equal(JSON.stringify(jsonSchema).match(/"additionalProperties":false/g)?.length, 4)
})

const others: readonly (readonly [string, Schema | JsonObject, Json])[] = [
  ['a list', z.array(z.number()), [1]],
  ['a text', z.string(), 'a'],
  ['nothing', z.null(), null],
  ['a union', z.union([z.object({ a: z.number() }), z.object({ value: z.string() })]), { value: 'x' }],
  ['plain JSON Schema of a list', { type: 'array', items: { type: 'number' } }, [1]],
  ['JSON Schema without a type', { enum: [1, 2] }, 2],
]
for (const [what, schema, value] of others) {
  test(`${what} is sent wrapped in an object, and read with and without it`, async () => {
    const { jsonSchema, parse } = answerShape(schema)
    assert.deepEqual([jsonSchema['type'], jsonSchema['required']], ['object', ['value']])
    assert.deepEqual(await parse({ value }), { value })
    assert.equal(await isShown(schema, { value }), true)
  })
}

const Tree: z.ZodType = z.object({
  name: z.string(),
  get children() {
    return z.array(Tree)
  },
})
const Nested: z.ZodType = z.lazy(() => z.array(Nested))
const tree = { name: 'a', children: [{ name: 'b', children: [] }] }
const refs: readonly (readonly [string, Schema | JsonObject, Json])[] = [
  ['an object that contains itself', Tree, tree],
  ['a list of objects that contain themselves', z.array(Tree), [tree]],
  ['a list that contains itself', Nested, [[], [[]]]],
  ['an object with an id', z.object({ n: z.number() }).meta({ id: 'Thing' }), { n: 1 }],
  ['a list of objects with an id', z.array(z.object({ n: z.number() }).meta({ id: 'Item' })), [{ n: 1 }]],
  [
    'JSON Schema with definitions',
    { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'number' } } },
    [1],
  ],
]
for (const [what, schema, value] of refs) {
  test(`${what} is sent as an object, and can be answered as sent`, async () => {
    const { jsonSchema, parse } = answerShape(schema)
    const given = isJsonObject(jsonSchema['properties']) && 'value' in jsonSchema['properties'] ? { value } : value
    assert.deepEqual([jsonSchema['type'], await isShown(schema, given)], ['object', true])
    assert.deepEqual(await parse(given), { value })
  })
}

test('a schema that cannot be sent to a model is rejected with a message', () => {
  const unshown = [z.date(), z.object({ f: z.map(z.string(), z.string()) }), v.object({ n: v.number() }), 7, null]
  for (const schema of unshown) {
    const refused = { code: 'AGENT_INVALID_OPTION', message: /"output" cannot be converted to JSON Schema/ }
    assert.throws(() => answerShape(schema as unknown as Schema), refused)
  }
})

test('a schema that throws says that the value does not fit', async () => {
  const picky = z.object({ n: z.number().refine(() => assert.fail('no mood')) })
  assert.match(JSON.stringify(await answerShape(picky).parse({ n: 1 })), /"problem":.*no mood/)
})

// ── the JSON in a text

// As stored: `__proto__` is not allowed as a key.
const anyJson = fc.jsonValue({ maxDepth: 4 }).map((value) => toJson(parseExactly(JSON.stringify(value))))
const anyObject = fc.dictionary(fc.string(), anyJson).map((value) => toJson(parseExactly(JSON.stringify(value))))

test('a JSON text is parsed', () => {
  fc.assert(
    fc.property(anyJson, fc.constantFrom('', ' ', '\n'), (value, space) => {
      assert.deepEqual(readJson(`${space}${JSON.stringify(value, null, 2)}${space}`), value)
    }),
  )
})

test('a number that JavaScript would round is a string in a typed answer', () => {
  const exact = { id: '9007199254740993', far: '1e400', near: 12.5 }
  const text = '{"id":9007199254740993,"far":1e400,"near":12.5}'
  assert.deepEqual(readJson(text), exact)
  assert.deepEqual(readJson(`\`\`\`json\n${text}\n\`\`\``), exact)
})

test('JSON is found in a code fence, and in text without other brackets', () => {
  const words = fc.constantFrom('', 'Here it is:', 'Sure! Two lines\nof words.')
  fc.assert(
    fc.property(anyObject, words, words, (value, before, after) => {
      const json = JSON.stringify(value)
      assert.deepEqual(readJson(`${before} ${json} ${after}`), value)
      if (json.includes('```')) return
      assert.deepEqual(readJson(`${before}\n\`\`\`json\n${json}\n\`\`\`\n${after}`), value)
      assert.deepEqual(readJson(`${before}\n\`\`\`\n${json}\n\`\`\`\n${after}`), value)
    }),
  )
})

test('a text without JSON gives undefined, and never throws', () => {
  for (const text of ['', 'no', '{', '}{', '[1, 2', '```json\n{"a":\n```', '{"a": 1', '}']) {
    assert.equal(readJson(text), undefined, text)
  }
  fc.assert(fc.property(fc.string(), (text) => void readJson(text)))
})

test('a text of any length is read in linear time', () => {
  const [fence, lines] = ['```', '\n'.repeat(200_000)]
  for (const text of [`${fence}${lines}`, `${fence}json${lines}\`\``, '{['.repeat(200_000), fence.repeat(200_000)]) {
    assert.equal(readJson(text), undefined, JSON.stringify(text.slice(0, 12)))
  }
})
