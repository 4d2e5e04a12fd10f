import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inexactNumber } from '../../values/json.ts'
import { readArguments } from './arguments.ts'

test('valid JSON arguments are parsed without repair, unless a number may have been rounded', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
      const text = JSON.stringify(args)
      if (inexactNumber(text) !== undefined) return assert.deepEqual(readArguments(text), { input: text })
      assert.deepEqual(readArguments(text), { input: JSON.parse(text) })
    }),
  )
})

test('missing arguments are read as an empty object', () => {
  assert.deepEqual(
    ['', '  \n', undefined, null].map((text) => readArguments(text)),
    [{ input: {} }, { input: {} }, { input: {} }, { input: {} }],
  )
})

test('arguments that are parsed already are not changed', () => {
  assert.deepEqual(readArguments({ path: 'a' }), { input: { path: 'a' } })
})

const repaired: readonly (readonly [string, string])[] = [
  ['{"path":"a",}', 'not valid JSON'],
  ['{"path":"a", "list":[1,2,],}', 'not valid JSON'],
  ['{"path":"a\nb"}', 'not valid JSON'],
  ['```json\n{"path":"a"}\n```', 'a code fence'],
  ['```\n{"path":"a",}\n```', 'not valid JSON'],
  ['"{\\"path\\":\\"a\\"}"', 'JSON inside a JSON string'],
]

for (const [text, why] of repaired) {
  test(`${JSON.stringify(text)} is repaired, and the reason is reported`, () => {
    const read = readArguments(text)
    assert.match(read.repaired ?? '', new RegExp(why))
    assert.match((read.input as { path: string }).path, /^a(\nb)?$/)
  })
}

test('a comma inside a string is not removed', () => {
  assert.deepEqual(readArguments('{"say":"a,}",}').input, { say: 'a,}' })
})

test('truncated arguments are never completed', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (args, at) => {
      const text = JSON.stringify(args)
      const half = text.slice(0, 1 + (at % (text.length - 1)))
      assert.deepEqual(readArguments(half), { input: half })
    }),
  )
})

test('text that is not JSON is returned unchanged', () => {
  assert.deepEqual(readArguments('rm -rf build'), { input: 'rm -rf build' })
})
