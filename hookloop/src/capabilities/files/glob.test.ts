import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import picomatch from 'picomatch'
import { toPathTest } from './glob.ts'

test('globs have the same meaning as in a shell', () => {
  const rows: readonly [glob: string, fits: readonly string[], not: readonly string[]][] = [
    ['*.ts', ['a.ts', '.ts', 'a.b.ts'], ['a.tsx', 'd/a.ts', 'ts']],
    ['*.*', ['a.ts', 'a.'], ['a']],
    ['**/*.ts', ['a.ts', 'd/a.ts', 'd/e/a.ts'], ['d/a.js']],
    ['src/**', ['src/a', 'src/a/b'], ['src', 'srcs/a', 'lib/src/a']],
    ['src/**/test/*.{ts,tsx}', ['src/test/a.ts', 'src/a/b/test/c.tsx'], ['src/test/a/b.ts', 'src/test/a.js']],
    ['a?c', ['abc', 'a.c'], ['ac', 'a/c', 'abbc']],
    ['[a-c]x', ['ax', 'cx'], ['dx', '-x']],
    ['[!a-c]x', ['dx'], ['ax', '/x']],
    ['[]]x', [']x'], ['x']],
    ['a\\*b', ['a*b'], ['axb']],
    ['{a,b{1,2}}.js', ['a.js', 'b1.js', 'b2.js'], ['b.js', '{a,b{1,2}}.js']],
    ['a.b+c(d)$^|', ['a.b+c(d)$^|'], ['axb+c(d)$^|']],
    ['[', ['['], ['x']],
  ]
  for (const [glob, fits, not] of rows) {
    const test = toPathTest(glob)
    assert.deepEqual([...fits, ...not].filter(test), fits, glob)
  }
})

test('simple globs match the same as picomatch', () => {
  const piece = fc.constantFrom('a', 'b', '.', '*', '?', '**/', '/', '{a,b}', '[ab]', 'x')
  const path = fc.array(fc.constantFrom('a', 'b', '.', '/', 'x', 'c'), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), path, (pieces, parts) => {
      const [glob, text] = [pieces.join(''), parts.join('')]
      // Where shells themselves differ: names that are empty or dots only, three stars, and stars beside braces.
      const differs = /^\/|\/\/|\/$|(^|\/)\.{1,2}(\/|$)|\*\*\*|\*\*[{[?]|[\]}?]\*\*/
      fc.pre(!differs.test(glob) && !differs.test(text))
      const folder = glob.endsWith('/**') ? glob.slice(0, -3) : undefined // it holds what it fits, and is not in itself
      fc.pre(folder === undefined || !toPathTest(folder)(text))
      const fits = picomatch(glob, { dot: true, noextglob: true, fastpaths: false }) // its short cuts find no "a." for "*.*"
      assert.equal(toPathTest(glob)(text), fits(text), `${glob} on ${text}`)
    }),
    { numRuns: 2_000 },
  )
})

test('globs run in linear time', () => {
  const name = 'a'.repeat(255)
  const bombs = [
    '*a'.repeat(100) + 'b',
    '{a,b}'.repeat(200),
    '**/'.repeat(300) + '*',
    '{a*,*a}'.repeat(100) + 'b',
    '?'.repeat(900),
  ]
  for (const bomb of bombs) {
    toPathTest(bomb)(name) // with backtracking it would not end
  }
})

test('an unclosed brace is rejected', () => {
  assert.throws(() => toPathTest('{a,b'), /not closed/)
})
