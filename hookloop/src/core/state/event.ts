import type { ErrorCode } from '../../errors.ts'
import type { ContinuationOutcome } from './continuation.ts'
import type { ErrorRecord, FinalRecord, StepType } from './execution.ts'
import type { FinishReason, InferenceDelta } from './inference.ts'
import type { Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from './ledger.ts'
import type { Message } from './message.ts'
import type { AgentPath } from './subagent.ts'
import type { Answer, Approval, ToolCall, ToolExecution } from './tool-call.ts'
import type { TokenUsage } from './usage.ts'
import type { WarningCode } from './warning.ts'

/** What happened in a run. */
type Occurrence =
  /** The run accepts its input, before hooks see it. */
  | { readonly type: 'input'; readonly message: Message; /** The id that the caller gave it. */ readonly turn?: string }
  | { readonly type: 'started'; readonly executionId: string; readonly agentId: string }
  | { readonly type: 'stepStarted' }
  /** A model is called. A step can have several: a hook may retry, use another model, or call a model itself. */
  | {
      readonly type: 'inferenceStarted'
      readonly attempt: number
      readonly model: string
      /** The hook that calls the model, if it is not the call of the step. */
      readonly hook?: string
    }
  /** A piece of the answer, of the reasoning, or of the arguments of a call. */
  | InferenceDelta
  /** Discard what was streamed of the current response: it was withheld or changed, or another attempt starts. */
  | { readonly type: 'retracted'; readonly why: string }
  | {
      readonly type: 'inferenceFailed'
      readonly attempt: number
      readonly model: string
      readonly hook?: string
      readonly error: { readonly code: ErrorCode; readonly message: string }
    }
  | { readonly type: 'warning'; readonly code: WarningCode; readonly message: string; readonly definedAt?: string }
  | { readonly type: 'responded'; readonly text: string; readonly reasoning?: string; readonly usage: TokenUsage }
  | { readonly type: 'toolStarted'; readonly call: ToolCall }
  | { readonly type: 'toolProgress'; readonly callId: string; readonly update: Json }
  | {
      readonly type: 'toolFinished'
      readonly call: ToolCall
      readonly execution: ToolExecution
      /** How long the tool ran; undefined if it did not run. */
      readonly durationMs?: number
    }
  /** A hook decided or changed something, warned or failed. Only the ledger has the invocations that did nothing of it. */
  | { readonly type: 'hook'; readonly entry: TimedLedgerEntry }
  /** A summary has replaced messages; `before` and `after` are the numbers of messages. */
  | {
      readonly type: 'compacted'
      readonly by: string
      readonly before: number
      readonly after: number
      readonly summary: string
    }
  | { readonly type: 'asked'; readonly approval: Approval }
  /** An approver has answered, here or in another process. `approval` is the id of the question. */
  | { readonly type: 'answered'; readonly approval: string; readonly answer: Answer; readonly by?: string }
  /** The text and the calls of the step are events before it. */
  | {
      readonly type: 'stepFinished'
      readonly kind: StepType
      readonly finishReason: FinishReason
      readonly usage: TokenUsage
      /** How many calls the step had. */
      readonly toolCalls: number
      /** The result of its votes. */
      readonly outcome: ContinuationOutcome
    }
  | { readonly type: 'error'; readonly error: ErrorRecord }
  /** A run that was suspended or interrupted resumes. */
  | { readonly type: 'resumed' }
  /** The session has gone back to a line. What came after it, and the messages of `runs`, are no longer part of the conversation. */
  | { readonly type: 'rewound'; readonly to: number; readonly runs: readonly string[] }
  | { readonly type: 'suspended'; readonly pending: readonly Approval[] }
  | { readonly type: 'finished'; readonly record: FinalRecord }

/** An event of an agent itself. In a run, exactly one `finished` or `suspended` comes last. */
export type OwnEvent = Occurrence & {
  /** The step in progress, or the last one, counted from 0. */
  readonly step: number
  /**
   * Milliseconds since 1970: the time of the last effect, so that a replay has the same. For a piece of an answer and for
   * progress, when it was emitted.
   */
  readonly at: number
}

/** An event as the loop emits it. */
export type EmittedEvent =
  | OwnEvent
  /** An event of a subagent. Its own `step` is a step of the subagent, the other one a step of the run. */
  | {
      readonly type: 'subagent'
      readonly path: AgentPath
      readonly event: OwnEvent
      readonly step: number
      readonly at: number
    }

/** What every event has beside its `step` and `at`. */
export type EventPlace = {
  /** Its number in the session; without a session, in the run. Each event has a higher number than the ones before. */
  readonly seq: number
  /** The session of the run, if it has one. */
  readonly session?: string
  /** The id of the run, the same in all its events. */
  readonly run: string
}

/** An event of a run, as `agent.stream` yields it; a `subagent` event contains one of a subagent with its path. */
export type AgentEvent = EmittedEvent & EventPlace

/** Where the loop reports events. */
export type Emit = (event: EmittedEvent) => void

/** Where events go once they have a place. */
export type EventListener = (event: AgentEvent) => void
