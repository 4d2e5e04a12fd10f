import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { toParts, toText } from './content.ts'
import { LineReader } from './line-reader.ts'
import { ToolNames } from './server-tools.ts'
import { cleanText, redactMessage } from './clean-text.ts'

test('lines are the same however the bytes are split', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat({ max: 20 })), (texts, cuts) => {
      const lines = texts.map((text) => text.replace(/[\r\n]/g, ' '))
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
      const reader = new LineReader(100_000)
      const seen: string[] = []
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = 1 + (cuts[i] ?? 7)
        seen.push(...reader.read(bytes.subarray(at, at + size))!)
        at += size
      }
      assert.deepEqual(
        seen,
        lines.map((line) => line.toWellFormed()),
      )
    }),
  )
})

test('a line has a maximum length, also if it arrives in parts', () => {
  const fits = new LineReader(4)
  const long = new LineReader(4)
  const parts = new LineReader(4)
  assert.deepEqual(fits.read(Buffer.from('abcd\nef\n')), ['abcd', 'ef'])
  assert.equal(long.read(Buffer.from('abcde\n')), undefined)
  assert.deepEqual([parts.read(Buffer.from('abc')), parts.read(Buffer.from('de'))], [[], undefined])
})

test('tools of one server have unique names, the same every time', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ minLength: 1, maxLength: 200 })), (own) => {
      const [first, second] = [new ToolNames('s'), new ToolNames('s')]
      const names = own.flatMap((name) => first.take(name) ?? [])
      assert.deepEqual(
        names,
        own.flatMap((name) => second.take(name) ?? []),
      )
      assert.equal(new Set(names).size, names.length)
      assert.deepEqual(
        names.filter((name) => !/^mcp__s__[A-Za-z0-9_.:-]{1,120}$/.test(name)),
        [],
      )
    }),
  )
})

test('secrets are removed from messages, also without their prefix', () => {
  const text = redactMessage('token abcdef123 was not accepted, nor 1 nor Bearer abcdef123', ['Bearer abcdef123', '1'])
  assert.equal(text, 'token [secret] was not accepted, nor 1 nor [secret]')
})

test('clean text keeps its lines and has no hidden characters, and huge texts are cheap', () => {
  assert.equal(cleanText('a\tb\r\nc\u001B[31m\u202Ed\u200B\uFEFF\u{E0041}', 100), 'a\tb\nc[31md')
  assert.equal(cleanText('\u0000'.repeat(50_000_000), 10), '')
  assert.equal(cleanText('👍👍', 3), '👍\uFFFD…')
})

test('content of every kind is shown, and unknown kinds are reported', () => {
  const content = [
    { type: 'text', text: 'hello' },
    { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
    { type: 'image', data: '<script>', mimeType: 'image/png' },
    { type: 'image', data: 'AAAA', mimeType: 'image/png\r\nx: y' },
    { type: 'resource', resource: { uri: 'file:///a/b.bin?x', blob: 'AAAA' } },
    { type: 'resource', resource: {} },
    { type: 'resource_link', uri: 'memo://a', name: 'A' },
    { type: 'hologram' },
    'no object',
    null,
  ]
  assert.equal(
    toText(content),
    [
      'hello',
      '[audio/wav, 3 bytes, not shown]',
      '[a file that is not base64]',
      '[application/octet-stream, 3 bytes, not shown]',
      '[application/octet-stream b.bin, 3 bytes, not shown]',
      '[resource  without content]',
      '[resource memo://a A]',
      '[content of an unknown kind: hologram]',
    ].join('\n'),
  )
  assert.deepEqual(toParts('none'), [])
})
