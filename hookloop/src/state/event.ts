import type { ErrorCode } from '../errors.ts'
import type { ContinuationOutcome } from './continuation.ts'
import type { ErrorRecord, FinalRecord, Step } from './execution.ts'
import type { InferenceDelta } from './inference.ts'
import type { Json } from './json.ts'
import type { TimedLedgerEntry } from './ledger.ts'
import type { AgentPath } from './subagent.ts'
import type { Answers, Approval, ToolCall, ToolExecution } from './tool-call.ts'
import type { TokenUsage } from './usage.ts'
import type { WarningCode } from './warning.ts'

/**
 * An event of an agent itself. Exactly one `finished` or `suspended` comes last. `step` is counted from 0, and `at` is the
 * time of the last effect, in milliseconds since 1970: the same in a replay.
 */
export type OwnEvent =
  | { readonly type: 'started'; readonly executionId: string; readonly agentId: string; readonly at: number }
  | { readonly type: 'stepStarted'; readonly step: number; readonly at: number }
  /** A model is called. A step can have several: a hook may retry, use another model, or call a model itself. */
  | {
      readonly type: 'inferenceStarted'
      readonly step: number
      readonly at: number
      readonly attempt: number
      readonly model: string
      /** The hook that calls the model, if it is not the call of the step. */
      readonly hook?: string
    }
  /** A piece of the answer, of the reasoning, or of the arguments of a call. */
  | (InferenceDelta & { readonly step: number })
  /** Discard what was streamed of the current response: it was withheld or changed, or another attempt starts. */
  | { readonly type: 'retracted'; readonly step: number; readonly why: string }
  | {
      readonly type: 'inferenceFailed'
      readonly step: number
      readonly at: number
      readonly attempt: number
      readonly model: string
      readonly hook?: string
      readonly error: { readonly code: ErrorCode; readonly message: string }
    }
  | {
      readonly type: 'warning'
      readonly step: number
      readonly code: WarningCode
      readonly message: string
    }
  | {
      readonly type: 'responded'
      readonly step: number
      readonly at: number
      readonly text: string
      readonly usage: TokenUsage
    }
  | { readonly type: 'toolStarted'; readonly step: number; readonly at: number; readonly call: ToolCall }
  | { readonly type: 'toolProgress'; readonly step: number; readonly callId: string; readonly update: Json }
  | {
      readonly type: 'toolFinished'
      readonly step: number
      readonly at: number
      readonly call: ToolCall
      readonly execution: ToolExecution
      /** How long the tool ran; undefined if it did not run. */
      readonly durationMs?: number
    }
  | { readonly type: 'hook'; readonly at: number; readonly entry: TimedLedgerEntry }
  /** A summary has replaced messages; `before` and `after` are the numbers of messages. */
  | {
      readonly type: 'compacted'
      readonly step: number
      readonly by: string
      readonly before: number
      readonly after: number
      readonly summary: string
    }
  | { readonly type: 'asked'; readonly step: number; readonly at: number; readonly approval: Approval }
  | { readonly type: 'stepFinished'; readonly step: Step }
  | { readonly type: 'counted'; readonly step: number; readonly outcome: ContinuationOutcome }
  | { readonly type: 'error'; readonly step: number; readonly error: ErrorRecord }
  | { readonly type: 'resumed'; readonly executionId: string; readonly answers: Answers }
  | { readonly type: 'suspended'; readonly executionId: string; readonly pending: readonly Approval[] }
  | { readonly type: 'finished'; readonly record: FinalRecord }

/** An event of a run, as `agent.stream` yields it; a `subagent` event contains one of a subagent with its path. */
export type AgentEvent = OwnEvent | { readonly type: 'subagent'; readonly path: AgentPath; readonly event: OwnEvent }

export type Emit = (event: AgentEvent) => void
