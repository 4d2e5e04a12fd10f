import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exact, oneLine, printable } from './printable.ts'

test('what a terminal would obey is taken out of a text, and lines and tabs stay', () => {
  const text = 'a\tb\nc\u001B[31md\u0007e\rf\u009B2Jg\u007Fh é 漢 👍'
  assert.equal(printable(text), 'a\tb\nc[31mdef2Jgh é 漢 👍')
})

test('a text that is cut into pieces is made printable like the whole', () => {
  const text = 'red \u001B[31mtext\u001B[0m and \u001B]0;title\u0007 more'
  assert.equal(text.split('').map(printable).join(''), printable(text))
})

test('one line is without colours, breaks and what is too much', () => {
  const lines = [oneLine('\u001B[31ma\u001B[0m\n\n  b\tc'), oneLine('abcdefghij', 5), oneLine('x'.repeat(5_000_000), 9)]
  assert.deepEqual(lines, ['a b c', 'abcd…', 'xxxxxxxx…'])
})

test('who must know exactly what a text says sees what cannot be seen', () => {
  assert.equal(exact('rm \u001B[8m-rf\u202E/\u200B'), 'rm \\u{1b}[8m-rf\\u{202e}/\\u{200b}')
})
