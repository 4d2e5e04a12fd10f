import { diffRuns } from '../sessions/replay/diff-runs.ts'
import type { StoredRun } from '../sessions/index.ts'
import type { Comparison } from './api.types.ts'
import { runSummary } from './runs.ts'

/** Two runs step by step, also those steps that are the same. */
export function compareRuns(a: StoredRun, b: StoredRun): Comparison {
  const { steps, ...diff } = diffRuns(a, b)
  const differing = new Map(steps.map(({ step, differs }) => [step, differs]))
  const differs = (step: number): Comparison['steps'][number]['differs'] => {
    const found = differing.get(step) ?? []
    return differing.has(step) && found.length === 0 ? ['end'] : found
  }
  const length = Math.max(a.steps.length, b.steps.length)
  return {
    ...diff,
    a: runSummary(a, false),
    b: runSummary(b, false),
    steps: Array.from({ length }, (_, step) => ({ differs: differs(step), a: a.steps[step], b: b.steps[step] })),
  }
}
