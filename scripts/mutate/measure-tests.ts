import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { modulesOf } from '../module-graph.ts'
import { firstFailure } from './run-tests.ts'

/** What one run of a test file without a change showed. */
export type Measured = {
  readonly test: string
  readonly ms: number
  /** Files that start processes run in a process of their own. */
  readonly starts: boolean
  /** The title of a test that fails without a change. */
  readonly failed?: string
  /** The ranges of each changed file that did not run. A file that is missing was not loaded. */
  readonly unreached: { readonly [file: string]: readonly Range[] }
}
type Range = readonly [start: number, end: number]

/** Tests that take longer than this hang, also on a busy machine. */
export const TEST_MS = 900_000

/** The test files that can load one of the files. Paths are relative to the repository. */
export function testsThatLoad(files: readonly string[]): readonly string[] {
  const tests = globSync('{hookloop/src,examples}/**/*.test.ts').filter((test) => !test.includes('node_modules'))
  const loads = (test: string): boolean => [...modulesOf(test)].some((module) => files.includes(module))
  return tests.filter(loads).toSorted()
}

/** Whether the test file ran the code at a position of a file. */
export function reaches({ unreached }: Measured, file: string, position: number): boolean {
  const ranges = unreached[file]
  return ranges !== undefined && !ranges.some(([start, end]) => start <= position && position < end)
}

/**
 * Runs a test file and records how long it takes and what it runs of the files, also in processes that it starts. The result
 * is stored in the folder `cache` until the test, a file that it loads, or one of the files changes.
 */
export async function measure(
  copy: string,
  test: string,
  { files, cache }: { readonly files: readonly string[]; readonly cache: string },
): Promise<Measured> {
  const modules = modulesOf(test)
  const loaded = [...new Set([...modules, ...files])].filter((file) => file.endsWith('.ts')).toSorted()
  const hash = createHash('sha256')
  for (const file of loaded) hash.update(file).update(readFileSync(file))
  const stored = join(cache, `${hash.digest('hex')}.json`)
  try {
    return JSON.parse(readFileSync(stored, 'utf8')) as Measured
  } catch {
    // not measured yet
  }
  const starts = modules.has('node:child_process')
  const folder = join(copy, '.cache/coverage', test)
  mkdirSync(folder, { recursive: true })
  const started = performance.now()
  let failed = await firstFailure(copy, [test], { timeoutMs: TEST_MS, env: { NODE_V8_COVERAGE: folder } })
  const ms = Math.round(performance.now() - started)
  let unreached = readCoverage(copy, folder, files)
  rmSync(folder, { recursive: true })
  if (failed !== undefined) {
    // Some tests look at the environment of processes, in which coverage is recorded.
    failed = await firstFailure(copy, [test], { timeoutMs: TEST_MS })
    unreached = Object.fromEntries(files.filter((file) => modules.has(file)).map((file) => [file, []]))
  }
  if (failed !== undefined) return { test, ms, starts, unreached, failed: failed.title }
  const measured: Measured = { test, ms, starts, unreached }
  mkdirSync(cache, { recursive: true })
  writeFileSync(stored, JSON.stringify(measured))
  return measured
}

type Coverage = {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[]
    }[]
  }[]
}

/** One process writes one report. What did not run is what ran in none of them. */
function readCoverage(copy: string, folder: string, files: readonly string[]): Measured['unreached'] {
  const names = new Map(files.map((file) => [pathToFileURL(join(copy, file)).href, file]))
  const found: Record<string, readonly Range[]> = {}
  for (const report of readdirSync(folder)) {
    const { result } = parsed(readFileSync(join(folder, report), 'utf8'))
    for (const { url, functions } of result) {
      const file = names.get(url)
      if (file === undefined) continue
      const unreached = unreachedRanges(functions.flatMap(({ ranges }) => ranges))
      found[file] = found[file] === undefined ? unreached : intersection(found[file], unreached)
    }
  }
  return found
}

/** A process that was killed while it wrote leaves half a report. */
function parsed(text: string): Coverage {
  try {
    return JSON.parse(text) as Coverage
  } catch {
    return { result: [] }
  }
}

/** Ranges contain each other: the smallest one that has a position says how often it ran. */
function unreachedRanges(ranges: Coverage['result'][number]['functions'][number]['ranges']): readonly Range[] {
  const bySize = ranges.toSorted((a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset))
  let unreached: readonly Range[] = []
  for (const { startOffset: start, endOffset: end, count } of bySize) {
    const outside = unreached.flatMap(([from, to]): readonly Range[] =>
      [[from, Math.min(to, start)] as const, [Math.max(from, end), to] as const].filter(([a, b]) => a < b),
    )
    unreached = count === 0 ? [...outside, [start, end]] : outside
  }
  return unreached
}

function intersection(some: readonly Range[], others: readonly Range[]): readonly Range[] {
  return some.flatMap(([a, b]) =>
    others.map(([c, d]): Range => [Math.max(a, c), Math.min(b, d)]).filter(([from, to]) => from < to),
  )
}
