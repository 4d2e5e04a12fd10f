import {
  isFinishReason,
  toBilledResponse,
  type InferenceDelta,
  type InferenceResponse,
  type LanguageModel,
  type ModelReply,
  type ModelRequest,
} from '../../state/inference.ts'
import type { Emit } from '../../state/event.ts'
import { toJson, type Json } from '../../state/json.ts'
import { areReplyParts } from '../../state/message.ts'
import { noTokens, toTokens, type TokenUsage } from '../../state/usage.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import type { HookHost } from '../../hooks/base-context.ts'
import type { Outstanding } from '../loop/pending-work.ts'
import type { CallLimit, RunDeadline } from '../loop/run-lifetime.ts'

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
  readonly onDelta?: ((delta: InferenceDelta) => void) | undefined
  /** Which attempt of the step it is, or which question of a hook. */
  readonly number: number
  readonly hook?: string
}

/** Asks a model once, and tells whoever watches that it is asked and that it failed. */
export function askOnce(run: AskingRun, question: Question): Promise<InferenceResponse> {
  const { emit } = run.effects
  return emit === undefined ? ask(run, question) : askWatched(run, question, emit)
}

async function askWatched(run: AskingRun, question: Question, emit: Emit): Promise<InferenceResponse> {
  const { model, signal, number, hook } = question
  const place = { step: run.step, attempt: number, model: nameOf(model), ...(hook !== undefined && { hook }) }
  emit({ type: 'inferenceStarted', ...place })
  try {
    return await ask(run, question)
  } catch (thrown) {
    const { code, message } = toAgentError(thrown, 'MODEL_FAILED')
    if (!signal.aborted) emit({ type: 'inferenceFailed', ...place, error: { code, message } })
    throw thrown
  }
}

function ask(run: AskingRun, question: Question): Promise<InferenceResponse> {
  const { model } = question
  const replying = run.deadline.within(callModel(question, limitedSignal(run, question)))
  return run.outstanding.abortable(replying).then((reply) => toCheckedReply(reply, model))
}

/** A model may be anybody's: one that throws, or answers at once, is taken as one that does so later. */
function callModel({ model, request, onDelta }: Question, signal: AbortSignal): Promise<ModelReply> {
  try {
    const reply = model.infer(request, onDelta === undefined ? { signal } : { signal, onDelta })
    return reply instanceof Promise ? reply : Promise.resolve(reply)
  } catch (thrown) {
    return Promise.reject(thrown)
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
  if (!Array.isArray(content) || !areReplyParts(content) || !isFinishReason(reply.finishReason)) {
    throw new AgentError(
      'MODEL_REPLY_INVALID',
      'The model answered with something that is not a reply.',
      plainValue(reply),
    )
  }
  const { finishReason, modelId, warnings } = reply
  return toBilledResponse({
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
