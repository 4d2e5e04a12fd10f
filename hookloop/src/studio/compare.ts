import { diffRuns } from '../sessions/replay/diff-runs.ts'
import type { StoredRun, StoredStep } from '../core/state/stored-run.ts'
import type { ComparedSide, Comparison } from './api.types.ts'
import { runSummary } from './runs.ts'

/** Two runs step by step, also those steps that are the same. */
export function compareRuns(a: StoredRun, b: StoredRun): Comparison {
  const { same, partsAt, steps, hooks } = diffRuns(a, b)
  const differing = new Map(steps.map(({ step, differs }) => [step, differs.length > 0 ? differs : ['end']]))
  const length = Math.max(a.steps.length, b.steps.length)
  return {
    a: { ...runSummary(a, false), session: a.session },
    b: { ...runSummary(b, false), session: b.session },
    same,
    ...(partsAt !== undefined && { partsAt }),
    steps: Array.from({ length }, (_, step) => ({
      step,
      differs: differing.get(step) ?? [],
      ...sideOf('a', a.steps[step]),
      ...sideOf('b', b.steps[step]),
    })),
    ...(hooks !== undefined && { hooks }),
  }
}

function sideOf<S extends 'a' | 'b'>(side: S, step: StoredStep | undefined): { readonly [K in S]?: ComparedSide } {
  if (step === undefined) return {}
  const { text, toolCalls, outcome, errors } = step
  const compared: ComparedSide = {
    text,
    calls: toolCalls.map(({ name, args, result }) => ({
      name,
      args,
      status: result?.status ?? 'running',
      output: result?.output ?? null,
      ...(result?.by !== undefined && { by: result.by }),
    })),
    votes: (outcome?.evaluations ?? []).map(({ decision, source, message }) => `${decision} by ${source}: ${message}`),
    errors: errors.map(({ message }) => message),
  }
  return { [side]: compared } as { readonly [K in S]?: ComparedSide }
}
