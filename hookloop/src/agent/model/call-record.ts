import type { ContinuationEvaluation } from '../../state/continuation.ts'
import {
  toBilledResponse,
  type FinishReason,
  type InferenceRequest,
  type InferenceResponse,
} from '../../state/inference.ts'
import { sameJson } from '../../state/json.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import { withUniqueIds, type Part } from '../../state/message.ts'
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
  /** How long the last attempt took. Not recorded either; undefined if it was repeated from a record. */
  ranMs?: number | undefined
}

/** What is recorded of a model call, including the hooks around it: an answer or an error. */
export type ModelCallRecord = {
  readonly content?: readonly Part[]
  readonly finishReason?: FinishReason
  readonly modelId?: string
  readonly warnings?: readonly string[]
  readonly error?: RecordedError
  /** What it has cost, and what the answer alone has cost if that is not the same. */
  readonly usage: TokenUsage
  readonly ownUsage?: TokenUsage
  /** Whether the usage includes an estimate for a call that did not complete. */
  readonly isEstimated?: true
  /** What hooks around the call did and voted. */
  readonly trail?: readonly LedgerEntry[]
  readonly votes?: readonly ContinuationEvaluation[]
}

type Rest = { readonly [K in 'isEstimated' | 'trail' | 'votes']?: ModelCallRecord[K] | undefined }

/** The record of an answer. Its text follows from its content. */
export function answeredRecord(response: InferenceResponse, usage: TokenUsage, rest: Rest = {}): ModelCallRecord {
  const { content, finishReason, modelId, warnings, usage: ownUsage } = response
  return {
    content: withUniqueIds(content), // ids identify calls in every process
    finishReason,
    ...(modelId !== undefined && { modelId }),
    ...(warnings !== undefined && { warnings }),
    usage,
    ...(ownUsage !== usage && !sameJson(ownUsage, usage) && { ownUsage }),
    ...withoutEmpty(rest),
  }
}

export function failedRecord(thrown: unknown, usage: TokenUsage, rest: Rest = {}): ModelCallRecord {
  return { error: toRecordedError(toAgentError(thrown, 'MODEL_FAILED')), usage, ...withoutEmpty(rest) }
}

function withoutEmpty({ isEstimated, trail = [], votes = [] }: Rest): Partial<ModelCallRecord> {
  return {
    ...(isEstimated === true && { isEstimated }),
    ...(trail.length > 0 && { trail }),
    ...(votes.length > 0 && { votes }),
  }
}

/** The answer in a record. Undefined if the call has failed. */
export function responseOf(record: ModelCallRecord): InferenceResponse | undefined {
  const { content, finishReason = 'other', modelId, warnings, usage, ownUsage = usage } = record
  if (content === undefined) return undefined
  return toBilledResponse({
    content,
    finishReason,
    usage: ownUsage,
    ...(modelId !== undefined && { modelId }),
    ...(warnings !== undefined && { warnings }),
  })
}

/** The error of a failed call: as it was thrown, or as it was recorded. */
export function failureOf({ thrown }: ModelCall, { error }: ModelCallRecord): AgentError {
  return thrown ?? new AgentError(error!.code, error!.message, { value: error!.value })
}
