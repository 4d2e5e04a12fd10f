import type { TimedLedgerEntry } from '../state/ledger.ts'
import { has } from './entries.ts'
import type { ExplainedRun } from './explainable.ts'

/**
 * The ledger entry of the hook whose failure ended the run: a guard that failed and therefore stopped it, or a hook whose
 * error was not recovered.
 */
export function decidingFailure(run: ExplainedRun): TimedLedgerEntry | undefined {
  const { by } = run.final ?? {}
  if (by === undefined) return undefined
  const own = run.ledger.filter(({ mode, path, shadow }) => mode !== 'loop' && path === undefined && shadow !== true)
  const decided = own.findLast((entry) => entry.hook === by && isFinal(entry))
  return decided?.error === undefined ? own.findLast((entry) => isUnrecovered(entry, run)) : decided
}

function isFinal(entry: TimedLedgerEntry): boolean {
  const isStop = has(entry, 'forbidContinuation') || has(entry, 'forbid') // the latter if it failed
  return isStop || (entry.trigger === 'onUserInput' && has(entry, 'block'))
}

/** Whether the error of a hook is the one that the run failed with, or that a hook at `onError` stopped it for. */
function isUnrecovered(entry: TimedLedgerEntry, { final, code: failedWith, steps }: ExplainedRun): boolean {
  const { error, mode, decision, step, trigger, code = 'HOOK_FAILED' } = entry
  if (error === undefined || mode !== 'transform' || decision !== undefined) return false
  const last = steps.at(-1)
  if (last !== undefined && step < last.index) return false
  const { by, reason } = final!
  const isError = by === `error at ${trigger}`
  if (!isError && (reason !== 'errorForbade' || by.startsWith('error at '))) return false
  const recorded = step === last?.index ? last.errors.at(-1) : undefined
  if (recorded !== undefined) return recorded.during === trigger && recorded.code === code
  return isError ? code === (failedWith ?? code) : step !== last?.index // a stored run has no code
}
