import { globSync } from 'node:fs'
import { dirname } from 'node:path'
import { modulesOf } from '../module-graph.ts'

/** Test files that one process runs. Files that start processes run alone. */
export type Stage = readonly string[]

/** The tests that load a file, those most likely to notice a change first. Paths are relative to the repository. */
export function relatedTests(file: string): readonly Stage[] {
  const all = globSync('{hookloop/src,examples}/**/*.test.ts').filter((test) => !test.includes('node_modules'))
  const tests = all
    .map((test) => ({ test, modules: modulesOf(test) }))
    .filter(({ modules }) => modules.has(file))
    .map(({ test, modules }) => ({
      test,
      starts: modules.has('node:child_process'),
      isNear: dirname(test) === dirname(file),
      size: modules.size,
    }))
    .toSorted((a, b) => Number(b.isNear) - Number(a.isNear) || a.size - b.size)
  const together = tests.filter(({ starts }) => !starts)
  const alone = tests.filter(({ starts }) => starts)
  const named = ({ test }: { readonly test: string }): string => test
  return [
    ...inParts(together.filter(({ isNear }) => isNear).map(named)),
    ...alone.filter(({ isNear }) => isNear).map((each) => [each.test]),
    ...inParts(together.filter(({ isNear }) => !isNear).map(named)),
    ...alone.filter(({ isNear }) => !isNear).map((each) => [each.test]),
  ]
}

/** A process for each of a few tests would mostly load files; one for all would find the first failure late. */
function inParts(tests: readonly string[]): readonly Stage[] {
  const size = 25
  return Array.from({ length: Math.ceil(tests.length / size) }, (_, i) => tests.slice(i * size, (i + 1) * size))
}
