import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyPatch } from 'diff'
import fc from 'fast-check'
import { unifiedDiff } from './unified-diff.ts'

test('a diff names the file and shows the change with three lines around it', () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join('')
  const diff = unifiedDiff('a.txt', before, before.replace('line 10', 'LINE 10'))
  assert.equal(
    diff,
    [
      '--- a.txt',
      '+++ a.txt',
      '@@ -7,7 +7,7 @@',
      ...[7, 8, 9].map((n) => ` line ${n}`),
      '-line 10',
      '+LINE 10',
      ...[11, 12, 13].map((n) => ` line ${n}`),
    ].join('\n'),
  )
})

test('applying a diff to the old text gives the new text', () => {
  const text = fc
    .array(fc.constantFrom('a\n', 'b\n', 'c\n', '\n', 'd\r\n', 'x'), { maxLength: 40 })
    .map((all) => all.join(''))
  fc.assert(
    fc.property(text, text, (before, after) => {
      fc.pre(before !== after)
      const diff = `${unifiedDiff('f', before, after)}\n`
      assert.equal(applyPatch(before, diff, { autoConvertLineEndings: false }), after, diff)
    }),
    { numRuns: 1_000 },
  )
})

test('a large change is reported and not shown', () => {
  const [before, after] = ['x', 'y'].map((char) =>
    Array.from({ length: 100_000 }, (_, i) => `${char}${i * 7}`).join('\n'),
  )
  const diff = unifiedDiff('f', before!, after!)
  assert.ok(diff.length < 20_000)
})
