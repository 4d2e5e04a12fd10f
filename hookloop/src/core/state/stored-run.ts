import type { ErrorCode } from '../../errors.ts'
import type { ContinuationOutcome } from './continuation.ts'
import type { ErrorRecord, FinalRecord, FinalStatus, HookRecord, Step, StepType } from './execution.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from './ledger.ts'
import type { Message } from './message.ts'
import type { AgentPath } from './subagent.ts'
import type { Answer, Answers, Approval, ToolExecution } from './tool-call.ts'
import type { TokenUsage, Usage } from './usage.ts'
import type { Warning } from './warning.ts'

/** The limits of a run, those of its `guards`, in the process that started or resumed it last. A limit that is not set is omitted. */
export type RunLimits = {
  /** Steps. Default: no limit. */
  readonly maxSteps?: number
  /** Input and output tokens. Default: no limit. */
  readonly maxTokens?: number
  /** Run time in milliseconds. Default: no limit. */
  readonly maxTimeMs?: number
  /** Cost in US dollars. Default: no limit. */
  readonly maxCost?: number
  /** Tool calls. Default: no limit. */
  readonly maxToolCalls?: number
}

/** A tool call of a stored step. */
export type StoredToolCall = {
  readonly id: string
  readonly name: string
  /** The arguments that were used, after hooks and approvers have changed them. */
  readonly args: Json
  /** The arguments that the model sent, if others were used. */
  readonly sentArgs?: Json
  /**
   * What the model received. Undefined while the call runs or waits. In an open step, what the tool has returned: hooks may
   * still change it.
   */
  readonly result?: ToolExecution
  /** When it started and ended. Undefined if it did not run. */
  readonly began?: number
  readonly ended?: number
  /** The approval that it waits for. */
  readonly approval?: Approval
}

/** A step of a stored run: a model call and its tool calls. */
export type StoredStep = {
  readonly index: number
  readonly type: StepType
  readonly text: string
  readonly toolCalls: readonly StoredToolCall[]
  readonly errors: readonly ErrorRecord[]
  readonly finishReason?: Step['finishReason']
  readonly usage: TokenUsage
  /** The model that answered, as `provider/model`. */
  readonly model?: string
  /** The votes on whether the run continues, and how they were counted. */
  readonly outcome?: ContinuationOutcome
  /** When its first call started. */
  readonly began?: number
  /** When it was stored. Undefined while it is open. */
  readonly at?: number
  /** The number of its line, for `forkSession` and `rewindSession`. Undefined while it is open. */
  readonly seq?: number
  /** The step has not ended: it runs, it waits for an approval, or its process has ended. */
  readonly isOpen?: true
  /** The session was rewound to an earlier point since. */
  readonly isRewound?: true
}

/** The place of a subagent in a run: it and its ancestors, the outermost first, with the step and the call that started each. */
export type CallPath = AgentPath

/** What a stored call did: call a model, a tool, a hook with effects or an approver, or wait. */
export type StoredCallKind = 'inference' | 'tool' | 'hook' | 'approval' | 'sleep'

/** A call of a stored run to the outside, with its time. */
export type StoredCall = {
  /** Unique in its run. */
  readonly key: string
  readonly kind: StoredCallKind
  /** The step of the agent that made it. */
  readonly step: number
  /** The id of the tool call that it belongs to. */
  readonly call?: string
  /** The subagent that made it; undefined for the agent itself. */
  readonly path?: CallPath
  /** The hook that made it, and where. */
  readonly trigger?: string
  readonly hook?: string
  /** The line that it was stored in. */
  readonly seq: number
  /** When it started. */
  readonly began?: number
  /** When it ended. Undefined while it runs, or if its process has ended. */
  readonly ended?: number
  /** Of a model call: the model, and what it cost. */
  readonly model?: string
  readonly usage?: TokenUsage
  /** Name and arguments of a tool; the question to an approver. A model call and a hook have a fingerprint. */
  readonly input: Json
  /** The content of an answer, the result of a tool before hooks changed it, the outcome of a hook, an answer. */
  readonly output?: Json
  readonly error?: { readonly code: ErrorCode; readonly message: string }
}

/** Something that happened to a stored run as a whole, in order. `step` is the open step. */
export type StoredRunEvent = { readonly at: number; readonly step: number; readonly seq: number } & (
  | { readonly type: 'suspended' }
  /** An approver has answered. */
  | { readonly type: 'answered'; readonly approval: string; readonly answer: Answer; readonly by?: string }
  /** It resumed with these answers. */
  | { readonly type: 'resumed'; readonly answers: Answers }
  /** Its process ended without it. `at`: when another one resumed it; `downMs`: since its last record. */
  | { readonly type: 'interrupted'; readonly downMs: number }
  /** The user has suspended or resumed the session. */
  | { readonly type: 'sessionSuspended'; readonly reason?: string }
  | { readonly type: 'sessionResumed' }
  /** The session went back to line `to`, in this run or after it. */
  | { readonly type: 'rewound'; readonly to: number }
)

/** What one model of a run has cost. */
export type ModelUsage = TokenUsage & { readonly model: string; readonly calls: number }

/**
 * A run of a session as it is stored, as plain JSON: see `readRuns`. `explain`, `explanation` and `diffRuns` accept it. Steps
 * are counted from 0, times are milliseconds since 1970.
 */
export type StoredRun = {
  /** The same as in its events. */
  readonly id: string
  /** Its place in the session, from 0. */
  readonly index: number
  readonly session: string
  /** The session that its session was forked from, and the line there. */
  readonly forkedFrom?: { readonly id: string; readonly seq: number }
  readonly agent: string
  /** As it was sent; hooks may have changed what the model received. */
  readonly input: Message
  readonly metadata?: JsonObject
  /** The id that the caller gave the turn. */
  readonly turn?: string
  /** The working directory of the process that started it. */
  readonly cwd?: string
  readonly limits?: RunLimits
  /** The hooks in force, in order. Empty if its input was blocked. */
  readonly hooks: readonly HookRecord[]
  /** When it started and ended, and how long it waited for approvals in between. */
  readonly at: number
  readonly endedAt?: number
  readonly waitedMs: number
  /** `running`: it has no end yet. Whether a process works on it is the `status` of its session in `store.list()`. */
  readonly status: 'running' | 'suspended' | FinalStatus
  /** The numbers of its first and last line. */
  readonly lines: { readonly first: number; readonly last: number }
  readonly steps: readonly StoredStep[]
  /** Every call to the outside: of the agent, its hooks and its subagents, in the order in which they were stored. */
  readonly calls: readonly StoredCall[]
  /** What hooks have decided and changed, up to the last checkpoint. */
  readonly ledger: readonly TimedLedgerEntry[]
  readonly warnings: readonly Warning[]
  readonly usage: Usage
  /** What its model calls have cost by model. Calls that tools make themselves are only in `usage`. */
  readonly models: readonly ModelUsage[]
  /** The approvals that wait for an answer. */
  readonly pending: readonly Approval[]
  readonly events: readonly StoredRunEvent[]
  /** Why and how it ended. */
  readonly final?: FinalRecord
}
