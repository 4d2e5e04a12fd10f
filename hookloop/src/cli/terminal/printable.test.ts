import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exact, oneLine, printable } from './printable.ts'

test('control characters are removed, except newlines and tabs', () => {
  const text = 'a\tb\nc\u001B[31md\u0007e\rf\u009B2Jg\u007Fh é 漢 👍'
  assert.equal(printable(text), 'a\tb\nc[31mdef2Jgh é 漢 👍')
})

test('a text in pieces becomes printable like the complete text', () => {
  const text = 'red \u001B[31mtext\u001B[0m and \u001B]0;title\u0007 more'
  assert.equal(text.split('').map(printable).join(''), printable(text))
})

test('oneLine() removes colours and line breaks, and cuts the text', () => {
  const lines = [oneLine('\u001B[31ma\u001B[0m\n\n  b\tc'), oneLine('abcdefghij', 5), oneLine('x'.repeat(5_000_000), 9)]
  assert.deepEqual(lines, ['a b c', 'abcd…', 'xxxxxxxx…'])
})

test('exact() escapes invisible characters', () => {
  assert.equal(exact('rm \u001B[8m-rf\u202E/\u200B'), 'rm \\u{1b}[8m-rf\\u{202e}/\\u{200b}')
})
