import type { AgentState } from '../state/agent-state.ts'
import type { StopReason } from '../state/continuation.ts'
import type { FinalRecord } from '../state/execution.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Warning } from '../state/warning.ts'
import type { Approval } from '../state/tool-call.ts'
import type { Usage } from '../state/usage.ts'
import type { AgentError } from '../../errors.ts'
import type { ActiveCall } from '../context/open-step.ts'

export type RunBase = {
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
    | { readonly status: 'suspended'; readonly pending: readonly Approval[]; readonly final?: undefined }
  )

/** What is not in the state of a suspended run, which is that of its last checkpoint: the calls of its open step, and its cost. */
export type OpenPart = { readonly calls: readonly Pick<ActiveCall, 'id' | 'name' | 'result'>[]; readonly usage: Usage }

const openParts = new WeakMap<object, OpenPart>()

export function rememberOpenPart(run: object, open: OpenPart): void {
  openParts.set(run, open)
}

export function openPartOf(run: object): OpenPart | undefined {
  return openParts.get(run)
}
