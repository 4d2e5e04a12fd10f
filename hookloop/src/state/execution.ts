import type { ErrorCode } from '../errors.ts'
import type { ContinuationEvaluation, ContinuationOutcome, StopReason } from './continuation.ts'
import type { FinishReason } from './inference.ts'
import type { Json } from './json.ts'
import type { List } from './list.ts'
import type { Message } from './message.ts'
import type { AskTrigger, OpenCall, ToolCall, ToolExecution } from './tool-call.ts'
import type { TokenUsage, Usage } from './usage.ts'

export const stepTypes = ['toolExecution', 'finalResponse', 'error'] as const

export type StepType = (typeof stepTypes)[number]

/** An error as it is stored: only JSON. */
export type ErrorRecord = { readonly code: ErrorCode; readonly message: string; readonly during: string }

/** A finished step: one model call and its tool calls. `messageCount` is the number of messages in its request. */
export type Step = {
  readonly index: number
  readonly type: StepType
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
  readonly toolExecutions: readonly ToolExecution[]
  readonly errors: readonly ErrorRecord[]
  readonly finishReason: FinishReason
  readonly usage: TokenUsage
  readonly messageCount: number
  /** The result of its votes. At `afterStep`, where votes are still cast, the result of no votes. */
  readonly outcome?: ContinuationOutcome
}

export type FinalStatus = 'completed' | 'stopped' | 'failed' | 'cancelled'
export type ExecutionStatus = 'running' | 'suspended' | FinalStatus

/** How an execution ended: its status, the reason, and which hook decided on what value. */
export type FinalRecord = {
  readonly status: FinalStatus
  readonly reason: StopReason
  readonly by: string
  readonly message: string
  readonly value?: Json
  /** All votes of the last count. */
  readonly votes: readonly ContinuationEvaluation[]
  readonly at: number
}

/** A step that is suspended. */
export type OpenStep = {
  readonly text: string
  readonly finishReason: FinishReason
  readonly usage: TokenUsage
  readonly messageCount: number
  /** The message of the model with the calls. */
  readonly asked: Message
  /** The index for the results: right after the message with the calls. */
  readonly resultsAt: number
  readonly calls: readonly OpenCall[]
  readonly errors: readonly ErrorRecord[]
}

/** A question of guards at another trigger than `beforeToolUse`. Its call has the name of the trigger. */
export type AskedQuestion = {
  readonly at: AskTrigger
  readonly call: OpenCall
  /** At `onStop`: the outcome that ends the run. */
  readonly outcome?: ContinuationOutcome
}

/** When a run was suspended, and a hash of the hooks in force then: a list that was edited is detected. */
type Waiting = { readonly waitingSince: number; readonly hooks?: string }

/** Where a suspended run resumes: before a new step, or among the calls of an open one. */
export type Cursor =
  | (Waiting & { readonly phase: 'beforeStep' })
  | (Waiting & { readonly phase: 'tools'; readonly step: OpenStep })
  | (Waiting & AskedQuestion & { readonly phase: 'asked' })

export type HookRecord = {
  readonly name: string
  readonly mode: 'transform' | 'guard' | 'observe'
  /** The triggers of a guard. */
  readonly on?: readonly string[]
  /** The tools that a guard is for, as names and wildcards, unless it is for all. */
  readonly tools?: readonly string[]
}

/** One execution of an agent, from its input to its final record. */
export type Execution = {
  readonly id: string
  readonly status: ExecutionStatus
  readonly startedAt: number
  /** Time spent waiting for approvals, which no limit counts. */
  readonly waitedMs: number
  readonly steps: List<Step>
  /** Votes that have not been counted yet. */
  readonly votes: readonly ContinuationEvaluation[]
  readonly usage: Usage
  /** The current number of consecutive failed or blocked steps. */
  readonly failures: number
  readonly continuations: { readonly inRow: number; readonly total: number }
  /** The hooks in force when it started. A guard among them must not be missing when it is resumed. */
  readonly hooks: readonly HookRecord[]
  readonly cursor?: Cursor
  readonly final?: FinalRecord
}

/** A step without a response is an error step. Failed calls, and failures that were recovered, are not. */
export function typeOfStep(step: Pick<Step, 'toolCalls'>, answered: boolean): StepType {
  if (!answered) return 'error'
  return step.toolCalls.length > 0 ? 'toolExecution' : 'finalResponse'
}

/** The index of the step in progress, or of the last one. */
export function lastStepOf({ steps, cursor }: Pick<Execution, 'steps' | 'cursor'>): number {
  return cursor?.phase === 'tools' ? steps.length : Math.max(0, steps.length - 1)
}

/** The working time of a run up to `now`, in milliseconds, without waiting for approvals. */
export function workedMs(execution: Execution, now: number): number {
  return Math.max(0, now - execution.startedAt - execution.waitedMs) // a clock may be set back
}
