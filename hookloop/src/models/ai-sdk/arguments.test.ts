import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readArguments } from './arguments.ts'

test('arguments that are JSON are read as they are', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
      const text = JSON.stringify(args)
      assert.deepEqual(readArguments(text), { input: JSON.parse(text) })
    }),
  )
})

test('no arguments are empty ones', () => {
  assert.deepEqual(
    ['', '  \n', undefined, null].map((text) => readArguments(text)),
    [{ input: {} }, { input: {} }, { input: {} }, { input: {} }],
  )
})

test('arguments that were read already stay as they are', () => {
  assert.deepEqual(readArguments({ path: 'a' }), { input: { path: 'a' } })
})

const mended: readonly (readonly [string, string])[] = [
  ['{"path":"a",}', 'not quite JSON'],
  ['{"path":"a", "list":[1,2,],}', 'not quite JSON'],
  ['{"path":"a\nb"}', 'not quite JSON'],
  ['```json\n{"path":"a"}\n```', 'a code fence'],
  ['```\n{"path":"a",}\n```', 'not quite JSON'],
  ['"{\\"path\\":\\"a\\"}"', 'JSON inside a JSON text'],
]

for (const [text, why] of mended) {
  test(`${JSON.stringify(text)} is mended, and why is said`, () => {
    const read = readArguments(text)
    assert.match(read.mended ?? '', new RegExp(why))
    assert.match((read.input as { path: string }).path, /^a(\nb)?$/)
  })
}

test('a comma inside of a text is not a comma too many', () => {
  assert.deepEqual(readArguments('{"say":"a,}",}').input, { say: 'a,}' })
})

test('arguments that were cut off are never completed', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (args, at) => {
      const text = JSON.stringify(args)
      const half = text.slice(0, 1 + (at % (text.length - 1)))
      assert.deepEqual(readArguments(half), { input: half })
    }),
  )
})

test('what is no JSON is given back as it was written', () => {
  assert.deepEqual(readArguments('rm -rf build'), { input: 'rm -rf build' })
})
