import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { InferenceRequest, InferenceResponse } from '../../state/inference.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import type { TokenUsage } from '../../state/usage.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import { toRecordedError, type CallLimit, type RecordedError } from './send-request.ts'
import type { AnswerStream } from './stream.ts'

/** The model call of a step. */
export type ModelCall = {
  readonly request: InferenceRequest
  readonly stream: AnswerStream | undefined
  /** The time limit, if a guard has set one. */
  readonly limit: CallLimit | undefined
  /** Not recorded: the error as it was thrown, and how long the hooks around the call took. */
  thrown: AgentError | undefined
  durations: readonly number[]
}

/** What is recorded of a model call, including the hooks around it. */
export type ModelCallRecord = {
  readonly response: InferenceResponse | null
  readonly error: RecordedError | null
  readonly usage: TokenUsage
  /** Whether the usage includes an estimate for a call that did not complete. */
  readonly isEstimated?: true
  readonly trail: readonly LedgerEntry[]
  readonly votes: readonly ContinuationEvaluation[]
}

export function failedRecord(
  call: ModelCall,
  thrown: unknown,
  rest: Omit<ModelCallRecord, 'response' | 'error'>,
): ModelCallRecord {
  call.thrown = toAgentError(thrown, 'MODEL_FAILED')
  return { response: null, error: toRecordedError(call.thrown), ...rest }
}

/** The error of a failed call: as it was thrown, or as it was recorded. */
export function failureOf({ thrown }: ModelCall, { error }: ModelCallRecord): AgentError {
  return thrown ?? new AgentError(error!.code, error!.message, { value: error!.value })
}
