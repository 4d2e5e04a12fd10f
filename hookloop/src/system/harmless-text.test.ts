import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exactly, harmless } from './harmless-text.ts'

test('colours, titles and text for the clipboard are taken out', () => {
  const text =
    '\u001B[31mred\u001B[0m \u001B]0;title\u0007\u001B]52;c;cHdu\u001B\\\u001B[2K\u001B[1A\u001BPq\u001B\\done'
  assert.equal(harmless(text), 'red done')
})

test('a sequence that never ends hides nothing', () => {
  assert.equal(harmless('a\u001B]0;title without end'), 'a\u241B]0;title without end')
})

test('other control characters become pictures, and lines end in a newline', () => {
  assert.equal(harmless('a\0b\bc\r\nd\re\u007F\u0085\tf'), 'a\u2400b\u2408c\nd\ne\u2421\uFFFD\tf')
})

test('characters that turn the direction of a text or cannot be seen at all are replaced, joined emoji stay', () => {
  assert.equal(harmless('x\u202Ey\u2066z\u{E0041} 👩‍👩‍👧'), 'x\uFFFDy\uFFFDz\uFFFD 👩‍👩‍👧')
})

test('harmless text is never longer than it was', () => {
  for (const text of ['\0'.repeat(1_000), '\u001B['.repeat(500), '\u202E'.repeat(100)]) {
    assert.ok(harmless(text).length <= text.length)
  }
})

test('a text that nobody closes takes no time', () => {
  const started = performance.now()
  harmless('\u001B]'.repeat(200_000))
  harmless(`\u001B[${'1;'.repeat(500_000)}`)
  assert.ok(performance.now() - started < 20_000)
})

test('whoever must decide sees everything', () => {
  assert.equal(
    exactly(`ls\u202E \u200B\u001B[2K${' '.repeat(5_000)}; rm x`),
    'ls\\u{202e} \\u{200b}\\u{1b}[2K[5000 spaces]; rm x',
  )
})
