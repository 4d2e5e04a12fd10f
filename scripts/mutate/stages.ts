import { dirname } from 'node:path'
import type { Measured } from './measure-tests.ts'

/** Test files that one process runs. */
export type Stage = {
  readonly tests: readonly string[]
  readonly timeoutMs: number
  /** A load of the machine can make these fail. */
  readonly starts: boolean
}

/** How long the tests of the first processes may take. A failure usually comes early, so the later ones run more. */
const STAGE_MS = [2_500, 10_000]
const LATER_STAGE_MS = 30_000

/** The tests of a changed file in the order in which they run: cheap ones first, and above all those in its folder. */
export function stagesOf(file: string, tests: readonly Measured[]): readonly Stage[] {
  const cost = ({ test, ms }: Measured): number => (dirname(test) === dirname(file) ? ms / 4 : ms)
  const sorted = tests.toSorted((a, b) => cost(a) - cost(b))
  const together: Measured[][] = [[]]
  for (const test of sorted.filter(({ starts }) => !starts)) {
    if (duration(together.at(-1)!) > (STAGE_MS[together.length - 1] ?? LATER_STAGE_MS)) together.push([])
    together.at(-1)!.push(test)
  }
  const alone = sorted.filter(({ starts }) => starts).map((test) => [test])
  return [...together, ...alone]
    .filter((stage) => stage.length > 0)
    .map((stage) => ({
      tests: stage.map(({ test }) => test),
      timeoutMs: timeoutFor(duration(stage)),
      starts: stage.some(({ starts }) => starts),
    }))
}

/** How long tests may take with a change, if they take this long without it. */
export function timeoutFor(ms: number): number {
  return 15_000 + 4 * ms
}

function duration(stage: readonly Measured[]): number {
  return stage.reduce((sum, { ms }) => sum + ms, 0)
}
