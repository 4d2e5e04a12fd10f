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

test('missing arguments are an empty object; parsed ones, and a text that is not JSON, stay as they are', () => {
  for (const none of ['', '  \n', undefined, null]) assert.deepEqual(readArguments(none), { input: {} })
  for (const input of [{ path: 'a' }, 'rm -rf build']) assert.deepEqual(readArguments(input), { input })
})

const repaired: readonly (readonly [string, string])[] = [
  ['{"path":"a",}', 'not valid JSON'],
  ['{"path":"a", "list":[1,2,],}', 'not valid JSON'],
  ['{"path":"a\nb"}', 'not valid JSON'],
  ['```json\n{"path":"a"}\n```', 'a code fence'],
  ['```\n{"path":"a",}\n```', 'not valid JSON'],
  ['"{\\"path\\":\\"a\\"}"', 'JSON inside a JSON string'],
]

test('almost valid arguments are repaired, and the reason is reported', () => {
  for (const [text, why] of repaired) {
    const read = readArguments(text)
    assert.match(read.repaired ?? '', new RegExp(why), text)
    assert.match((read.input as { path: string }).path, /^a(\nb)?$/, text)
  }
  assert.deepEqual(readArguments('{"say":"a,}",}').input, { say: 'a,}' }, 'a comma inside a string is not removed')
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
