import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  canonicalText,
  exactJson,
  hashJson,
  inexactNumber,
  isJsonObject,
  parseExactly,
  sameJson,
  toJson,
  toSizedJson,
  type Json,
} from './json.ts'

class Money {
  readonly amount = 5
}

function nested(depth: number): unknown {
  let value: unknown = 'inside'
  for (let i = 0; i < depth; i++) value = { value }
  return value
}

function circle(): unknown {
  const ring: { again?: unknown } = {}
  ring.again = [ring]
  return ring
}

function frozenThrough(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return true
  return Object.isFrozen(value) && Object.values(value).every(frozenThrough)
}

// Without -0, which has no JSON text of its own.
const jsonValue = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as Json)
const jsonObject = fc.dictionary(fc.string(), jsonValue)

function withoutProto(key: string, inner: unknown): unknown {
  return key === '__proto__' ? undefined : inner
}

test('what is JSON is copied exactly, and the copy is frozen through and through', () => {
  fc.assert(
    fc.property(jsonValue, (value) => {
      const copy = exactJson(value, 'value')
      assert.equal(JSON.stringify(copy), JSON.stringify(value, withoutProto))
      assert.deepEqual(toJson(value), copy)
      assert.ok(frozenThrough(copy))
    }),
  )
})

test('the lossy copy loses what JSON.stringify loses, and nothing else', () => {
  const anything = fc.anything({
    withDate: true,
    withNullPrototype: true,
    withSparseArray: true,
  })
  fc.assert(
    fc.property(
      anything.filter((value) => value !== undefined),
      (value) => {
        assert.equal(JSON.stringify(toJson(value)), JSON.stringify(value, withoutProto))
      },
    ),
  )
})

const withoutForm: { readonly [what: string]: unknown } = {
  Map: new Map([['a', 1]]),
  Set: new Set([1]),
  Promise: Promise.resolve(1),
  Response: new Response('text'),
  Headers: new Headers({ a: 'b' }),
  ReadableStream: new Blob(['x']).stream(),
  ArrayBuffer: new ArrayBuffer(8),
  Uint8Array: new Uint8Array(1e8),
  RegExp: /x/,
  Iterator: [1].values(),
}

for (const [name, value] of Object.entries(withoutForm)) {
  test(`a ${name} throws instead of becoming an empty object`, () => {
    assert.throws(() => toJson({ value }), { code: 'JSON_INVALID', message: /is not JSON; convert it to/ })
  })
}

test('an error becomes its name and message, with its own properties', () => {
  const error = Object.assign(new TypeError('no'), { code: 'E1' })
  assert.deepEqual(toJson({ error }), { error: { code: 'E1', name: 'TypeError', message: 'no' } })
})

test('a list that is too long throws before it is copied', () => {
  const list: unknown[] = []
  list[4_294_967_294] = 1
  assert.throws(() => toJson({ list }), { code: 'JSON_INVALID', message: /larger than 64 Mi characters/ })
})

test('a whole number beyond 2^53 and one that is too large become strings, and no other number does', () => {
  const inexact = ['9007199254740993', '-12345678901234567891', '9007199254740993.0', '1.2345678901234569e+23', '1e400']
  const exact = [
    '9007199254740991',
    '1e21',
    '1.5e+300',
    '0.1234567890123456789',
    '-0',
    '"9007199254740993"',
    '"\\"1e400"',
  ]
  for (const form of inexact) {
    assert.equal(inexactNumber(`{"a":[${form}]}`), form)
    assert.deepEqual(parseExactly(`{"a":[${form}],"${form}":1}`), { a: [form], [form]: 1 })
  }
  for (const form of exact) {
    assert.equal(inexactNumber(`{"a":${form}}`), undefined)
    assert.deepEqual(parseExactly(`{"a":${form}}`), JSON.parse(`{"a":${form}}`))
  }
})

const notExact: { readonly [what: string]: unknown } = {
  undefined: undefined,
  'undefined in a property': { a: undefined },
  'undefined in a list': [1, undefined],
  'a hole in a list': Array(1),
  NaN: Number.NaN,
  Infinity: { a: [Infinity] },
  'a Date': new Date(0),
  'a function': () => 1,
  'a method': { run() {} },
  'a symbol': Symbol('s'),
  'a property under a symbol': { [Symbol('s')]: 1 },
  'a class instance': { price: new Money() },
  'a Map': new Map([['a', 1]]),
  'a boxed number': Object(5) as unknown,
  'a bigint': 5n,
  'a circle': circle(),
  'nesting of 10,000 levels': nested(10_000),
  'an object with toJSON': { toJSON: () => 'x' },
}

for (const [what, value] of Object.entries(notExact)) {
  test(`${what} is not JSON, and says so by name instead of being lost`, () => {
    assert.throws(() => exactJson(value, 'answer'), {
      name: 'AgentError',
      code: 'JSON_INVALID',
      message: /^The answer /,
    })
  })
}

test('a value that JSON cannot represent is rejected even by a lossy copy', () => {
  for (const value of [5n, circle(), nested(10_000), 'x'.repeat(64 * 1024 * 1024 + 1)]) {
    assert.throws(() => toJson(value), { code: 'JSON_INVALID' })
  }
})

test('a value with too many parts is rejected before it is copied, also if they are holes or one part many times', () => {
  let twice: unknown = ['x']
  for (let i = 0; i < 60; i++) twice = [twice, twice]
  for (const value of [{ a: [Array(5e7)] }, twice]) assert.throws(() => toJson(value), /more than 4 Mi values/)
})

test('a key "__proto__" changes no prototype', () => {
  const copy = exactJson(JSON.parse('{"a":1,"__proto__":{"admin":true},"in":{"__proto__":[]}}'), 'value')
  assert.equal(JSON.stringify(copy), '{"a":1,"in":{}}')
  assert.equal((copy as { admin?: unknown }).admin, undefined)
  assert.equal(({} as { admin?: unknown }).admin, undefined)
})

test('the size of a copy is about the length of its text', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ name: fc.string({ minLength: 20, maxLength: 60 }) })), (value) => {
      const length = JSON.stringify(value).length
      const { size } = toSizedJson(value)
      assert.ok(size >= length / 2 - 4 && size <= length * 2 + 4, `${size} for ${length}`)
    }),
  )
})

test('equal values have equal texts and fingerprints, whatever the order of their keys', () => {
  fc.assert(
    fc.property(jsonObject, fc.infiniteStream(fc.nat()), (value, ranks) => {
      const shuffled = shuffle(value, ranks)
      assert.equal(canonicalText(shuffled), canonicalText(value))
      assert.equal(hashJson(shuffled), hashJson(value))
      assert.ok(sameJson(shuffled, value))
    }),
  )
})

function shuffle(value: Json, ranks: Iterator<number>): Json {
  if (Array.isArray(value)) return value.map((item: Json) => shuffle(item, ranks))
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([key, inner]) => ({ key, inner, rank: ranks.next().value as number }))
  return Object.fromEntries(
    entries.toSorted((a, b) => a.rank - b.rank).map(({ key, inner }) => [key, shuffle(inner, ranks)]),
  )
}
