import { AgentState, SAVED_VERSION } from '../state/agent-state.ts'
import type { StopReason } from '../state/continuation.ts'
import type { FinalRecord } from '../state/execution.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Warning } from '../state/warning.ts'
import type { Approval } from '../state/tool-call.ts'
import type { Usage } from '../state/usage.ts'
import type { AgentError } from '../errors.ts'
import { saveRun } from '../effects/save-run.ts'
import { warningsOf } from './explain/warnings.ts'
import type { ActiveCall } from './loop/open-step.ts'
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

/** What is not in the state of a suspended run, which is that of its last checkpoint: the calls of its open step, and its cost. */
export type OpenPart = { readonly calls: readonly Pick<ActiveCall, 'id' | 'name' | 'result'>[]; readonly usage: Usage }

const openParts = new WeakMap<object, OpenPart>()

export function openPartOf(run: object): OpenPart | undefined {
  return openParts.get(run)
}

/** What `toRun` gets: how the run ended, or what it waits for. */
type End = { readonly final?: FinalRecord | undefined; readonly pending?: readonly Approval[] | undefined }

export function toRun(run: RunContext, { final, pending = [] }: End): Run {
  const state = final === undefined ? suspendedState(run) : run.state
  let ledger: readonly TimedLedgerEntry[] | undefined
  let warnings: readonly Warning[] | undefined
  // A blocked input opens no execution; the last text of the state is from an earlier run.
  const isOwn = run.hasExecution && run.blocked === undefined
  const text = run.open?.text ?? (isOwn ? (state.lastStep?.text ?? '') : '')
  const base: RunBase = {
    text,
    reason: final?.reason,
    state,
    get ledger() {
      return (ledger ??= run.ledgerOf.all)
    },
    get warnings() {
      return (warnings ??= warningsOf(base.ledger))
    },
    session: run.options.session,
    toJSON: () =>
      final === undefined
        ? saveRun(run.effects.journal.log, { state, pending })
        : { version: SAVED_VERSION, status: final.status, pending: [], state: state.toJSON(), ledger: base.ledger },
  }
  if (final === undefined) {
    const suspended = endedAs(base, { status: 'suspended', pending } as const)
    openParts.set(suspended, { calls: run.open?.calls ?? [], usage: run.effects.journal.log.openUsage('') })
    return suspended
  }
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

/** The state of a suspended run is that of its last checkpoint: what has happened since is in its records. */
function suspendedState({ effects, start }: RunContext): AgentState {
  const base = effects.scopeLog.state ?? start
  if (base.execution?.status !== 'running') return base
  return AgentState.patch(base, { execution: Object.freeze({ ...base.execution, status: 'suspended' }) })
}
