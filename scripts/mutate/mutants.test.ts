import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { suite, test } from 'node:test'
import { decidingFiles } from './deciding-files.ts'
import { mutantsOf } from './mutants.ts'
import { relatedTests } from './related-tests.ts'

suite('npm run mutate', () => {
  const cases: { readonly [source: string]: readonly string[] } = {
    'const a: boolean = b === c': ['b === c → b !== c'],
    'const a = b && !c': ['b && !c → b || !c', '!c → c'],
    'if (a) b()': ['a → !(a)', 'b() → void 0'],
    'function f(a: number) { if (a > 1) return 2; return 3 }': [
      'a > 1 → !(a > 1)',
      'a > 1 → a >= 1',
      '1 → 2',
      'return 2; → ;',
      '2 → 3',
      '3 → 4',
    ],
    "const a = { decision: 'block', message: `b ${c + 'd'}` }": ["'block' → 'block-changed'"],
    'const a = b.some(c) ? true : false': ['b.some(c) → !(b.some(c))', 'some → every', 'true → false', 'false → true'],
    "import { a } from 'b'": [],
  }
  for (const [source, changes] of Object.entries(cases)) {
    test(`changes ${source}`, () => {
      assert.deepEqual(
        mutantsOf(source).map(({ change }) => change),
        changes,
      )
    })
  }

  test('removes a call that is awaited, and an await', () => {
    const found = mutantsOf('async function f() { await g() }').map(({ change }) => change)
    assert.deepEqual(found, ['await g() → void 0', 'await g() → (g())'])
  })

  test('finds changes in the files that decide, and every changed file can be parsed', () => {
    const sources = decidingFiles().map((file) => readFileSync(file, 'utf8'))
    const found = sources.flatMap((source) => mutantsOf(source).map((mutant) => ({ ...mutant, source })))
    assert.ok(found.length > 1000)
    for (const { source, start, end, text } of found.filter((_, i) => i % 20 === 0))
      stripTypeScriptTypes(source.slice(0, start) + text + source.slice(end))
  })

  test('runs the tests in the folder of a file first', () => {
    const [first] = relatedTests('hookloop/src/hooks/run-hooks.ts')
    assert.ok(first!.includes('hookloop/src/hooks/run-hooks.test.ts'))
  })
})
