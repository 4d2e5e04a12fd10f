import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CappedOutput, joinCapped } from './capped-output.ts'

const cap = (text: string | Uint8Array, { head, tail, step = 7 }: { head: number; tail: number; step?: number }) => {
  const bytes = Buffer.from(text as string)
  const output = new CappedOutput({ head, tail })
  for (let at = 0; at < bytes.length; at += step) output.push(bytes.subarray(at, at + step))
  return output.result()
}

test('output that fits is stored completely', () => {
  assert.deepEqual(cap('hello world', { head: 4, tail: 7 }), {
    head: 'hello world',
    tail: '',
    totalBytes: 11,
    droppedBytes: 0,
  })
})

test('of longer output the head and the tail are stored, and the dropped bytes are counted', () => {
  const capped = cap('0123456789', { head: 3, tail: 2 })
  assert.deepEqual(capped, { head: '012', tail: '89', totalBytes: 10, droppedBytes: 5 })
  assert.equal(joinCapped(capped), '012\n[… 5 bytes left out …]\n89')
})

test('a cut never goes through a character', () => {
  const capped = cap('aé🙂'.repeat(100), { head: 5, tail: 6 })
  assert.deepEqual([capped.head, capped.tail, capped.droppedBytes], ['aé', 'é🙂', 700 - 3 - 6])
})

test('bytes that are not UTF-8 become replacement characters', () => {
  assert.equal(cap(Buffer.from([0xff, 0xfe, 0x41]), { head: 10, tail: 10 }).head, '\uFFFD\uFFFDA')
})

test('the result does not depend on how the bytes are split into chunks', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.nat(20),
      fc.nat(20),
      fc.integer({ min: 1, max: 50 }),
      (text, head, tail, step) => {
        const capped = cap(text, { head, tail, step })
        const stored = Buffer.byteLength(capped.head) + Buffer.byteLength(capped.tail)
        assert.deepEqual(capped, cap(text, { head, tail, step: 1 }))
        assert.equal(stored + capped.droppedBytes, Buffer.byteLength(text))
        assert.ok(text.startsWith(capped.head) && text.endsWith(capped.tail))
      },
    ),
  )
})

test('a gigabyte of output takes no more memory than the stored part', () => {
  const chunk = Buffer.alloc(65_536, 'x')
  const output = new CappedOutput({ head: 8_192, tail: 24_576 })
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 16_384; i++) output.push(chunk)
  assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000)
  assert.equal(output.result().droppedBytes, 2 ** 30 - 32_768)
})
