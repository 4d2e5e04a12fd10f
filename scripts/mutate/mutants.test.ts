import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { suite, test } from 'node:test'
import { decidingFiles } from './deciding-files.ts'
import { equivalent } from './equivalent.ts'
import { reaches, type Measured } from './measure-tests.ts'
import { mutantsOf } from './mutants.ts'
import { ruleMutants } from './rules.ts'
import { withoutRule } from './run-rules.ts'
import { stagesOf } from './stages.ts'

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
    'const a = { priority: 200 }, b = { priority: -900 }, c = { priority: 0 }': ['200 → 0', '900 → 0', '0 → 1'],
    'const a = b.toString()': [],
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

  test('knows every change that is listed as equivalent, by the code of one line, wherever that is', () => {
    for (const { file, code, change } of equivalent) {
      const all = mutantsOf(readFileSync(`hookloop/src/${file}`, 'utf8'))
      const lines = new Set(all.filter((each) => each.code === code && each.change === change).map(({ line }) => line))
      assert.equal(lines.size, 1, `${file}: ${change} is on ${lines.size} lines "${code}"`)
    }
  })

  test('finds the text of every rule that it turns off', () => {
    for (const mutant of ruleMutants) withoutRule(readFileSync(`hookloop/src/${mutant.file}`, 'utf8'), mutant)
  })

  test('runs cheap tests first, those in the folder of a file above all, and files that start processes alone', () => {
    const test = (name: string, ms: number, starts = false): Measured => ({ test: name, ms, starts, unreached: {} })
    const tests = [test('b/slow.test.ts', 9_000), test('b/quick.test.ts', 500), test('a/near.test.ts', 1_000)]
    const stages = stagesOf('a/file.ts', [test('a/starts.test.ts', 100, true), ...tests, test('b/last.test.ts', 9_500)])
    assert.deepEqual(
      stages.map((stage) => stage.tests),
      [['a/near.test.ts', 'b/quick.test.ts', 'b/slow.test.ts'], ['b/last.test.ts'], ['a/starts.test.ts']],
    )
  })

  test('runs only the tests that reach a change', () => {
    const unreached = { 'a.ts': [[10, 20]] as const }
    const test: Measured = { test: 'a.test.ts', ms: 1, starts: false, unreached }
    assert.deepEqual(
      [reaches(test, 'a.ts', 9), reaches(test, 'a.ts', 10), reaches(test, 'a.ts', 20), reaches(test, 'b.ts', 9)],
      [true, false, true, false],
    )
  })
})
