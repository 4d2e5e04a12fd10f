import { SAVED_VERSION, type AgentState } from '../state/agent-state.ts'
import type { StopReason } from '../state/continuation.ts'
import type { FinalRecord } from '../state/execution.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Warning } from '../state/warning.ts'
import { pendingIn } from '../state/open-calls.ts'
import type { Approval } from '../state/tool-call.ts'
import type { AgentError } from '../errors.ts'
import { warningsOf } from './explain/warnings.ts'
import type { RunContext } from './loop/run-context.ts'

type RunBase = {
  /** The text of the model in the last step. */
  readonly text: string
  /** Why the run ended; undefined while it is suspended. */
  readonly reason: StopReason | undefined
  readonly state: AgentState
  readonly ledger: readonly TimedLedgerEntry[]
  /** What went wrong without ending the run: hooks that failed, estimated usage, hooks of files that do not run. */
  readonly warnings: readonly Warning[]
  /** The session that it ran in. */
  readonly session?: string | undefined
  /** Save a run with `JSON.stringify(run)`, and resume it from the result of `JSON.parse`. */
  readonly toJSON: () => SavedRun
}

/** The result of a run, by `status`. Every status but `suspended` has a final record. */
export type Run<O = string> = RunBase &
  (
    | { readonly status: 'completed'; readonly output: O; readonly final: FinalRecord }
    | { readonly status: 'stopped'; readonly reason: StopReason; readonly by: string; readonly final: FinalRecord }
    | { readonly status: 'failed'; readonly error: AgentError; readonly final: FinalRecord }
    | { readonly status: 'cancelled'; readonly final: FinalRecord }
    | { readonly status: 'suspended'; readonly pending: readonly Approval[] }
  )

export function toRun(run: RunContext, final: FinalRecord | undefined): Run {
  const { state } = run
  let ledger: readonly TimedLedgerEntry[] | undefined
  let warnings: readonly Warning[] | undefined
  // A blocked input opens no execution; the last text of the state is from an earlier run.
  const own = final === undefined || state.execution?.final === final
  const text = own ? textOf(state) : ''
  const base: RunBase = {
    text,
    reason: final?.reason,
    state,
    get ledger() {
      return (ledger ??= run.ledgerWriter.timed()) // most callers never read it
    },
    get warnings() {
      return (warnings ??= warningsOf(base.ledger))
    },
    session: run.session,
    toJSON: () => ({
      version: SAVED_VERSION,
      status: final?.status ?? 'suspended',
      pending: final === undefined ? pendingOf(state) : [],
      state: state.toJSON(),
      ledger: base.ledger,
    }),
  }
  if (final === undefined) return endedAs(base, { status: 'suspended', pending: pendingOf(state) })
  switch (final.status) {
    case 'completed': {
      // The type of the output is that of `Agent<O>`; it is not known here.
      const output = run.output === undefined ? text : (run.output.value as string)
      return endedAs(base, { status: 'completed', output, final })
    }
    case 'stopped':
      return endedAs(base, { status: 'stopped', reason: final.reason, by: final.by, final })
    case 'failed':
      return endedAs(base, { status: 'failed', error: run.failure!, final })
    case 'cancelled':
      return endedAs(base, { status: 'cancelled', final })
    default:
      return final.status satisfies never
  }
}

/** Adds the ending without reading the ledger, which is created on first use. */
function endedAs<E extends object>(base: RunBase, ending: E): RunBase & E {
  return Object.freeze(Object.assign(base, ending))
}

/** The text of the model in the last step, which may still be open. */
function textOf({ execution, lastStep }: AgentState): string {
  return (execution?.cursor?.phase === 'tools' ? execution.cursor.step.text : lastStep?.text) ?? ''
}

/** The approvals that a suspended state waits for. */
export function pendingOf(state: AgentState): readonly Approval[] {
  return Object.freeze(pendingIn(state.execution))
}
