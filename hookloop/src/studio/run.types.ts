import type { ContinuationOutcome } from '../core/state/continuation.ts'
import type { AgentEvent } from '../core/state/event.ts'
import type { Json } from '../values/json.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../core/state/ledger.ts'
import type { ModelUsage, RunLimits, StoredRun } from '../core/state/stored-run.ts'
import type { Approval } from '../core/state/tool-call.ts'
import type { TokenUsage } from '../core/state/usage.ts'

/** A run of a session by its index, from 0. Default: the last. */
export type RunRef = { readonly session: string; readonly run?: number }

export type RunStatus = StoredRun['status'] | 'interrupted'
export type RunSummary = Pick<StoredRun, 'index' | 'id' | 'session' | 'agent' | 'cwd' | 'usage' | 'endedAt'> & {
  readonly input: string
  readonly status: RunStatus
  readonly live: boolean
  readonly startedAt: number
  /** Why it ended or waits, and which hook decided that. */
  readonly decided?: Decided | undefined
}
type Decided = { readonly by: string; readonly message: string; readonly definedAt?: string | undefined }

export type RunInfo = RunSummary & {
  /** The number of runs in the session. */
  readonly runs: number
  /** The columns in the order in which the hooks fire. */
  readonly columns: readonly Column[]
  /** The number of rows. */
  readonly rows: number
  /** Decisions that hooks made: blocks, questions, changes, votes, failures. */
  readonly decisions: number
  readonly gauges: readonly Gauge[]
  /** What would let it continue. */
  readonly wayOn?: string | undefined
  readonly pending: readonly Question[]
  /** Whether the run can be judged again (`whatIf`); otherwise why not. */
  readonly whatIf: true | string
}

/** The text of `explain`, and the warnings of the run. */
export type RunExplanation = { readonly text: string; readonly warnings: readonly string[] }

/** A limit in force, and how much of it was used. */
export type Gauge = { readonly limit: keyof RunLimits; readonly used: number; readonly max: number }

export type Column = {
  /** Where it is in `Row.cells`. Ids stay the same while a run grows; new columns get new ids. */
  readonly id: number
  readonly hook: string
  readonly mode: LedgerEntry['mode']
  readonly shadow: boolean
  /** Columns are grouped by the first trigger that their hooks fire at. */
  readonly group: string
  /** File and line, if it decided something in this run or is known from the agent. */
  readonly definedAt?: string | undefined
  /** The hook only keeps records for a capability. */
  readonly bookkeeping: boolean
  /** How often it decided or changed something. */
  readonly decided: number
}

/**
 * What hooks did, one character per column id: ` ` nothing (a shorter text: the rest did nothing), `-` was skipped, or a shadow without an opinion, `+` allowed,
 * `x` blocked, `?` asked, `~` changed something, `s` voted to stop, `c` requested to continue, `r` recovered from an error,
 * `!` failed, `o` another decision. If a hook did several things in a row, the most severe: `x` `!` `?` `s` `c` `r` `~` `o` `+`.
 */
export type Cells = string

/** One row of the matrix: what happened, and what each hook did about it. Texts are shortened to 200 characters. */
export type Row = {
  readonly index: number
  /** `input`, `model` call of a step, tool `call`, `votes` after a step, `end`; `note`: something else, such as a summary. */
  readonly kind: 'input' | 'model' | 'call' | 'votes' | 'end' | 'note'
  /** Counted from 0. */
  readonly step: number
  /** The tool of a call, or the model. */
  readonly name?: string | undefined
  readonly text: string
  readonly status?: 'ok' | 'failed' | 'blocked' | 'withheld' | 'outcomeUnknown' | 'asked' | 'running' | undefined
  readonly at?: number | undefined
  readonly ms?: number | undefined
  readonly cells: Cells
  /** Whether a hook that is not in shadow mode decided something here, or a question waits. */
  readonly decision: boolean
  /** The id of the call. */
  readonly call?: string | undefined
  /** The row belongs to a subagent: the names from the outermost to it. */
  readonly path?: readonly string[] | undefined
  /** The question that waits here, by its id. */
  readonly question?: string | undefined
  /** The point behind the row's step that `fork` takes. */
  readonly forkAt?: number | undefined
}
export type RowsPage = { readonly rows: readonly Row[]; readonly total: number }

export type FindRequest = RunRef & {
  /** The row to start behind, -1 for the start; with `back`, to start before. */
  readonly from: number
  readonly back?: boolean
  /** A text in the row or in what hooks said, or any decision. Case is ignored. */
  readonly what: { readonly text: string } | 'decision'
}

export type RowDetail = {
  readonly row: Row
  /** The whole text of the model or of the user. */
  readonly text: string
  /** Of a call: its arguments as they ran, those of the model if hooks changed them, its output. */
  readonly args?: Json | undefined
  readonly originalArgs?: Json | undefined
  readonly output?: Json | undefined
  readonly usage?: TokenUsage | undefined
  /** What each hook did here. */
  readonly entries: readonly TimedLedgerEntry[]
  /** The votes that were counted here, and why one of them decided. */
  readonly votes?: (ContinuationOutcome & { readonly how: string }) | undefined
  readonly question?: Question | undefined
  /** Errors of the step. */
  readonly errors: readonly string[]
}

/** A line of the stream of a run. */
export type RunChange =
  /** The run without rows. Also sent when its status, usage, columns or questions change. */
  | { readonly type: 'run'; readonly run: RunInfo }
  /** Rows to append or to replace, by `index`. `total` is the number of rows now. */
  | { readonly type: 'rows'; readonly rows: readonly Row[]; readonly total: number }
  /** An event as it happens, such as a piece of text or the progress of a tool. Rows follow when it is stored. */
  | { readonly type: 'event'; readonly event: AgentEvent }
  /** The session has a newer run. */
  | { readonly type: 'newRun'; readonly run: number }
  /** The session was deleted. */
  | { readonly type: 'deleted' }

/** A question that waits for an answer, and the session that asks. */
export type Question = Approval & {
  readonly session: string
  readonly title: string
  readonly agent: string
  readonly askedAt: number
  /** Why the arguments cannot be edited; undefined if they can. */
  readonly notEditable?: string | undefined
}

/** Where the time and the money of a run went. */
export type TimeReport = {
  readonly startedAt: number
  readonly endedAt: number
  /** Time that no limit counts: waiting for answers, and while no process worked on it. */
  readonly waitedMs: number
  /** Of hooks, only those that decided or changed something, or failed. */
  readonly totals: { readonly modelMs: number; readonly toolsMs: number; readonly hooksMs: number }
  /** Spans in the order in which they began. At most 5000, the longest ones. */
  readonly spans: readonly Span[]
  readonly models: readonly ModelUsage[]
}
export type Span = {
  readonly kind: 'model' | 'tool' | 'hook' | 'wait'
  readonly name: string
  readonly step: number
  readonly startMs: number
  readonly ms: number
  readonly row: number | null
}

/**
 * What a page in one file contains, as JSON in `<script type="application/json" id="hookloop-data">`. Its details are by row index.
 * The page shows only the run then, and calls nothing.
 */
export type EmbeddedRun = {
  readonly run: RunInfo
  readonly rows: readonly Row[]
  readonly details: readonly RowDetail[]
  readonly time: TimeReport
  readonly explanation: RunExplanation
}
