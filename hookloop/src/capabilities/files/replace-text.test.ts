import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { replaceText } from './replace-text.ts'

const once = (text: string, find: string, put: string): string | undefined =>
  replaceText(text, { find, put, all: false, maxLength: Infinity }).text
const every = (text: string, find: string, put: string, maxLength = 1_000): ReturnType<typeof replaceText> =>
  replaceText(text, { find, put, all: true, maxLength })

test('one place is replaced literally', () => {
  assert.equal(once('a OLD b', 'OLD', "cost $& $1 $$ $` $'"), "a cost $& $1 $$ $` $' b")
})

test('replacing all places counts them', () => {
  assert.deepEqual(every('x.x.x', 'x', 'y'), { text: 'y.y.y', places: 3 })
  assert.deepEqual(every('aaa', 'aa', 'b'), { text: 'ba', places: 1 })
})

test('a text that is found more than once is rejected with the count and the lines', () => {
  assert.throws(() => once('x\ny\nx\n', 'x', 'z'), /found in 2 places \(lines 1, 3\)/)
  assert.throws(() => once('aaa', 'aa', 'b'), /found in 2 places/)
  assert.throws(() => once('x'.repeat(5_000), 'x', 'z'), /found in 1000 or more places/)
})

test('a text that is not found is rejected with a hint', () => {
  assert.throws(() => once('a', 'b', 'c'), /not found, so the file was not changed/)
  assert.throws(() => once('  a', '     1\ta', 'c'), /line numbers of read_file/)
  assert.throws(() => once('\tfoo()', '  foo()', 'c'), /different white space/)
})

test('CRLF lines stay CRLF, whatever line ends the strings have', () => {
  assert.equal(once('a\r\nb\r\nc\r\n', 'a\nb', 'x\ny\nz'), 'x\r\ny\r\nz\r\nc\r\n')
  assert.equal(once('a\r\nb\r\n', 'b', 'b\nc'), 'a\r\nb\r\nc\r\n')
  assert.equal(once('a\r\nb\r\n', 'a\r\nb', 'x\r\ny'), 'x\r\ny\r\n')
})

test('the text around a replacement stays the same', () => {
  const part = fc.string({ maxLength: 20 })
  fc.assert(
    fc.property(part, part, part, (before, after, put) => {
      const find = '\u0001needle\u0001'
      fc.pre(put !== find && !/[\r\n]/.test(before + after + put))
      assert.equal(once(before + find + after, find, put), before + put + after)
    }),
  )
})
