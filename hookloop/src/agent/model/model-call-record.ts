import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { InferenceRequest, InferenceResponse } from '../../state/inference.ts'
import type { Json } from '../../state/json.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import { addTokens, noTokens, type TokenUsage } from '../../state/usage.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import type { AnswerStream } from './stream.ts'
import { plainValue } from './send-request.ts'
import type { CallLimit } from '../loop/run-lifetime.ts'

/** What is to be asked, and how. */
export type ModelCallPlan = {
  readonly request: InferenceRequest
  readonly stream: AnswerStream | undefined
  /** How long it may take, if a guard has said so. */
  readonly limit: CallLimit | undefined
}

/** What is recorded of a model call with everything around it. */
export type ModelCallRecord = {
  readonly response: InferenceResponse | null
  readonly error: { readonly code: AgentError['code']; readonly message: string; readonly value?: Json } | null
  readonly usage: TokenUsage
  readonly trail: readonly LedgerEntry[]
  readonly votes: readonly ContinuationEvaluation[]
}

export const none: readonly never[] = Object.freeze([])

/** What is left when the port itself failed, or the model did before there was anything to record. */
export function unansweredRecord(thrown: unknown): ModelCallRecord {
  return failedRecord(thrown, { usage: noTokens, trail: none, votes: none })
}

/** What a call cost, with what hooks spent that looked at the answer while it was written. */
export function billed({ stream }: ModelCallPlan, usage: TokenUsage): TokenUsage {
  return stream === undefined || stream.spent === noTokens ? usage : addTokens(usage, stream.spent)
}

/** What is told to people and never recorded: the error as it was thrown, and how long hooks took. */
const told = new WeakMap<ModelCallRecord, { readonly thrown?: AgentError; readonly durations?: readonly number[] }>()

export function durationsOf(record: ModelCallRecord): readonly number[] {
  return told.get(record)?.durations ?? none
}

export function failureOf(record: ModelCallRecord): AgentError {
  const { code, message, value } = record.error!
  return told.get(record)?.thrown ?? new AgentError(code, message, { value })
}

/** Keeps how long hooks took beside a record. */
export function withDurations(record: ModelCallRecord, durations: readonly number[]): ModelCallRecord {
  told.set(record, { durations })
  return record
}

export function failedRecord(
  thrown: unknown,
  rest: Pick<ModelCallRecord, 'usage' | 'trail' | 'votes'>,
  durations: readonly number[] = none,
): ModelCallRecord {
  const error = toAgentError(thrown, 'MODEL_FAILED')
  const { code, message, value } = error
  const record = { response: null, error: { code, message, ...plainValue(value) }, ...rest }
  told.set(record, { thrown: error, durations })
  return record
}
