import type { ErrorCode } from '../../errors.ts'
import { noVotes, type ContinuationEvaluation, type ContinuationOutcome, type StopReason } from './continuation.ts'
import type { FinishReason } from './inference.ts'
import type { Json } from '../../values/json.ts'
import { withItems, type List } from './list.ts'
import type { ToolCall, ToolExecution } from './tool-call.ts'
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
  readonly toolExecutions: readonly (ToolExecution & { readonly name: string })[]
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

/** A hook that was in force when an execution started. */
export type HookRecord = {
  readonly name: string
  readonly mode: 'transform' | 'guard' | 'observe'
  /** The triggers of a guard. */
  readonly on?: readonly string[]
  /** A hash of the source of a guard without a name, so that another one does not pass for it. */
  readonly code?: string
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
  readonly steps: readonly Step[]
  /** Votes that have not been counted yet. */
  readonly votes: readonly ContinuationEvaluation[]
  readonly usage: Usage
  /** The current number of consecutive failed or blocked steps. */
  readonly failures: number
  readonly continuations: { readonly inRow: number; readonly total: number }
  /** Requests for another step that has not been taken yet. */
  readonly requested?: readonly ContinuationEvaluation[]
  /** The hooks in force when it started. A guard among them must not be missing when it is resumed. */
  readonly hooks: readonly HookRecord[]
  readonly final?: FinalRecord
}

/** An execution as the loop changes it. */
export type ExecutionFields = Omit<Execution, 'steps'> & { readonly steps: List<Step> }

/** An execution as users see it. It is made once. */
export function shownExecution(fields: ExecutionFields): Execution {
  const known = executions.get(fields)
  if (known !== undefined) return known
  const execution = withItems(fields, 'steps', fields.steps)
  executions.set(fields, execution)
  return execution
}

const executions = new WeakMap<ExecutionFields, Execution>()

/** The index of the last step. */
export function lastStepOf({ steps }: { readonly steps: { readonly length: number } }): number {
  return Math.max(0, steps.length - 1)
}

/** The event of a step that has ended, without its time. */
export function stepFinished({ index: step, type: kind, finishReason, usage, toolCalls, outcome = noVotes }: Step) {
  return { type: 'stepFinished', step, kind, finishReason, usage, toolCalls: toolCalls.length, outcome } as const
}

/** The working time of a run up to `now`, in milliseconds, without waiting for approvals. */
export function workedMs(execution: Pick<Execution, 'startedAt' | 'waitedMs'>, now: number): number {
  return Math.max(0, now - execution.startedAt - execution.waitedMs) // a clock may be set back
}
