import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import * as fc from 'fast-check'
import { toParts, toText } from './content.ts'
import { LineReader } from './line-reader.ts'
import { MessageBudget } from './message-budget.ts'
import { ToolNames } from './tool-names.ts'
import { cleaned, safeWords } from './words.ts'

test('lines are the same however the bytes are cut', () => {
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

test('a line may be as long as is allowed and not longer, also in pieces', () => {
  const fits = new LineReader(4)
  const whole = new LineReader(4)
  const pieces = new LineReader(4)
  assert.deepEqual(fits.read(Buffer.from('abcd\nef\r\n')), ['abcd', 'ef'])
  assert.equal(whole.read(Buffer.from('abcde\n')), undefined)
  assert.deepEqual([pieces.read(Buffer.from('abc')), pieces.read(Buffer.from('de'))], [[], undefined])
})

test('answers cost nothing, one for each request, and everything else does', () => {
  const asked = new MessageBudget()
  const unasked = new MessageBudget()
  const answer = (id: number) => ({ jsonrpc: '2.0' as const, id, result: {} })
  const ids = Array.from({ length: 30_000 }, (_, id) => id)
  for (const id of ids) asked.sent({ jsonrpc: '2.0', id, method: 'ping' })
  assert.deepEqual(
    [ids.every((id) => asked.received(answer(id))), ids.every((id) => unasked.received(answer(id)))],
    [true, false],
  )
})

test('who was silent for a while may speak again', async () => {
  const budget = new MessageBudget()
  while (budget.received());
  await sleep(50)
  assert.equal(budget.received(), true)
})

test('tools of one server never share a name, and names are the same every time', () => {
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

test('secrets are taken out of words, also without the word before them', () => {
  const words = safeWords('token abcdef123 was not accepted, nor 1 nor Bearer abcdef123', ['Bearer abcdef123', '1'])
  assert.equal(words, 'token [secret] was not accepted, nor 1 nor [secret]')
})

test('clean words keep their lines and lose what hides, and huge ones cost little', () => {
  assert.equal(cleaned('a\tb\r\nc\u001B[31m\u202Ed\u200B\uFEFF\u{E0041}', 100), 'a\tb\nc[31md')
  assert.equal(cleaned('\u0000'.repeat(50_000_000), 10), '')
  assert.equal(cleaned('👍👍', 3), '👍\uFFFD…')
})

test('content of every kind has a form, and what has none is told', () => {
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
