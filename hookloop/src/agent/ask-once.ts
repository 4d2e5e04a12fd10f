import {
  isFinishReason,
  toResponse,
  type InferenceDelta,
  type InferenceResponse,
  type LanguageModel,
  type ModelReply,
  type ModelRequest,
} from '../data/inference.ts'
import { toJson, type Json } from '../data/json.ts'
import { isReplyPart } from '../data/message.ts'
import { noTokens, toTokens, type TokenUsage } from '../data/usage.ts'
import { AgentError, toAgentError } from '../errors.ts'
import type { HookHost } from '../hooks/draft.ts'
import type { Outstanding } from './outstanding.ts'
import type { CallLimit, RunDeadline } from './run-deadline.ts'

/** As much of a run as it takes to ask a model. */
export interface AskingRun extends HookHost {
  readonly outstanding: Outstanding
  readonly deadline: RunDeadline
}

export type Question = {
  readonly model: LanguageModel
  readonly request: ModelRequest
  /** That of the run, or one that aborts with it. */
  readonly signal: AbortSignal
  readonly limit: CallLimit | undefined
  readonly onDelta?: (delta: InferenceDelta) => void
  /** Which attempt of the step it is, or which question of a hook. */
  readonly number: number
  readonly hook?: string
}

/** Asks a model once, and tells whoever watches that it is asked and that it failed. */
export async function askOnce(run: AskingRun, question: Question): Promise<InferenceResponse> {
  const { model, request, signal, onDelta, number, hook } = question
  const heeded = limitedSignal(run, question)
  const { emit } = run.effects
  const place = emit && { step: run.step, attempt: number, model: nameOf(model), ...(hook !== undefined && { hook }) }
  emit?.({ type: 'inferenceStarted', ...place! })
  try {
    const reply = model.infer(request, onDelta === undefined ? { signal: heeded } : { signal: heeded, onDelta })
    const given = await run.outstanding.abortable(
      run.deadline.within(reply instanceof Promise ? reply : Promise.resolve(reply)),
    )
    return toCheckedReply(given, model)
  } catch (thrown) {
    const { code, message } = toAgentError(thrown, 'MODEL_FAILED')
    if (!signal.aborted) emit?.({ type: 'inferenceFailed', ...place!, error: { code, message } })
    throw thrown
  }
}

/** The signal a call heeds: that of the run, that of its attempt, and that of the time it has. */
function limitedSignal(run: AskingRun, { limit, signal }: Question): AbortSignal {
  if (limit === undefined) return signal
  const limited = run.deadline.signalFor(limit) // aborts with the run as well
  return signal === run.signal ? limited : AbortSignal.any([signal, limited])
}

export function nameOf({ provider, modelId }: LanguageModel): string {
  return `${provider}/${modelId}`
}

export function toCheckedReply(reply: ModelReply, model: LanguageModel): InferenceResponse {
  const content = Array.isArray(reply?.content) ? plainValue(reply.content).value : undefined
  if (!Array.isArray(content) || !content.every(isReplyPart) || !isFinishReason(reply.finishReason)) {
    throw new AgentError(
      'MODEL_REPLY_INVALID',
      'The model answered with something that is not a reply.',
      plainValue(reply),
    )
  }
  const { finishReason, modelId, warnings } = reply
  return toResponse({
    content,
    finishReason,
    usage: usageOf(reply, model),
    ...(typeof modelId === 'string' && { modelId }),
    ...(Array.isArray(warnings) && { warnings: Object.freeze(warnings.map(String)) }),
  })
}

function usageOf({ usage }: ModelReply, { cost }: LanguageModel): TokenUsage {
  const tokens = toTokens(usage ?? noTokens)
  if (typeof cost !== 'function' || usage?.costUsd !== undefined) return tokens
  const costUsd = cost(tokens)
  if (typeof costUsd === 'number' && costUsd >= 0 && costUsd < Infinity) return toTokens({ ...tokens, costUsd })
  // Counted as nothing, it would take every limit on cost away.
  throw new AgentError('MODEL_INVALID', 'The "cost" of the model gave no amount.', plainValue({ costUsd }))
}

/** The value at fault, if it can be kept: an error must not be lost for what it carries. */
export function plainValue(value: unknown): { readonly value?: Json } {
  try {
    return value === undefined ? {} : { value: toJson(value) }
  } catch {
    return {}
  }
}
