import assert from 'node:assert/strict'
import { test } from 'node:test'
import { escapeInvisible, revealInvisible, sanitizeText } from './sanitize-text.ts'

test('escape sequences for colours, titles and the clipboard are removed', () => {
  const text =
    '\u001B[31mred\u001B[0m \u001B]0;title\u0007\u001B]52;c;cHdu\u001B\\\u001B[2K\u001B[1A\u001BPq\u001B\\done'
  assert.equal(sanitizeText(text), 'red done')
})

test('an escape sequence without an end hides no text', () => {
  assert.equal(sanitizeText('a\u001B]0;title without end'), 'a\u241B]0;title without end')
})

test('other control characters become symbols, and lines end in a newline', () => {
  assert.equal(sanitizeText('a\0b\bc\r\nd\re\u007F\u0085\tf'), 'a\u2400b\u2408c\nd\ne\u2421\uFFFD\tf')
})

test('characters that change the text direction or are invisible are replaced, and joined emoji stay', () => {
  assert.equal(sanitizeText('x\u202Ey\u2066z\u{E0041} 👩‍👩‍👧'), 'x\uFFFDy\uFFFDz\uFFFD 👩‍👩‍👧')
})

test('sanitized text is never longer than the input', () => {
  for (const text of ['\0'.repeat(1_000), '\u001B['.repeat(500), '\u202E'.repeat(100)]) {
    assert.ok(sanitizeText(text).length <= text.length)
  }
})

test('an unterminated sequence is handled in linear time', () => {
  sanitizeText('\u001B]'.repeat(200_000))
  sanitizeText(`\u001B[${'1;'.repeat(500_000)}`)
})

test('letters without a shape, blank symbols, selectors and other spaces are escaped', () => {
  const invisible = [
    0x3164, 0x115f, 0x1160, 0xffa0, 0x2800, 0xfe0f, 0xe0100, 0x34f, 0x180b, 0xa0, 0x2003, 0x2028, 0xe000, 0x378, 0xfdd0,
    0xffff,
  ]
  for (const code of invisible) {
    assert.equal(escapeInvisible(`a${String.fromCodePoint(code)}b`), `a\\u{${code.toString(16)}}b`)
  }
  assert.equal(escapeInvisible('ls \t\n é 漢字 👩'), 'ls \t\n é 漢字 👩')
})

test('letters without a shape and hidden data after an emoji are replaced, and the emoji stays', () => {
  assert.equal(
    sanitizeText('a\u3164b\u115Fc ❤\uFE0F ❤\uFE0F\uFE01\uFE02'),
    'a\uFFFDb\uFFFDc ❤\uFE0F ❤\uFE0F\uFFFD\uFFFD',
  )
})

test('an approver sees every invisible character', () => {
  assert.equal(
    revealInvisible(`ls\u202E \u200B\u001B[2K${' '.repeat(5_000)}; rm x`),
    'ls\\u{202e} \\u{200b}\\u{1b}[2K[5000 spaces]; rm x',
  )
})
