import { MODEL_KEY, type AgentState } from '../state/agent-state.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import {
  isFinishReason,
  toBilledResponse,
  type FinishReason,
  type InferenceDelta,
  type InferenceResponse,
  type LanguageModel,
  type ModelReply,
  type ModelRequest,
} from '../state/inference.ts'
import { isJsonObject, sameJson, toJson, type Json, type JsonObject } from '../../values/json.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { areReplyParts, withUniqueIds, type Part } from '../state/message.ts'
import { isAmount, noTokens, toTokens, type TokenUsage } from '../state/usage.ts'
import { errorText } from '../effects/journal.ts'
import type { ErrorText } from '../effects/records.ts'
import { untilEnd, type WorkLimit } from '../effects/run-time.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import type { HookHost } from '../hooks/hook-host.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { estimateInput, estimateTokens, USAGE_ESTIMATED } from './estimate-usage.ts'

export type SentRequest = {
  readonly model: LanguageModel
  readonly request: ModelRequest
  /** The signal of the run, or one that aborts with it. */
  readonly signal: AbortSignal
  readonly limit: CallLimit | undefined
  readonly onDelta?: ((delta: InferenceDelta) => void) | undefined
  /** The number of the attempt in its step, or of the call of a hook. */
  readonly number: number
  /** The hook that makes the call, if one does. */
  readonly hook?: string
}

/** When a call must have ended, including all its attempts, and the guard that set the limit. */
export type CallLimit = { readonly until: number; readonly ms: number; readonly by: string }

/** A limit that starts now. */
export function limitFromNow({ ms, by }: { readonly ms: number; readonly by: string }): CallLimit {
  return { until: performance.now() + ms, ms, by }
}

/** Sends one request to a model, and emits events about its start and its failure. */
export async function sendRequest(run: HookHost, sent: SentRequest): Promise<InferenceResponse> {
  const { model, signal, number, hook, request } = sent
  const place = { step: run.step, attempt: number, model: nameOf(model), ...(hook !== undefined && { hook }) }
  run.effects.emit?.({ type: 'inferenceStarted', at: run.now, ...place })
  try {
    return toCheckedReply(await getReply(run, sent), model, request)
  } catch (thrown) {
    const { code, message } = toAgentError(thrown, 'MODEL_FAILED')
    if (!signal.aborted)
      run.effects.emit?.({ type: 'inferenceFailed', at: run.now, ...place, error: { code, message } })
    throw thrown
  }
}

function getReply({ effects, conversation }: HookHost, sent: SentRequest): Promise<ModelReply> {
  const { model, request, onDelta } = sent
  const limit = limitOf(sent)
  const signal = limit === undefined ? sent.signal : AbortSignal.any([sent.signal, limit.signal])
  const call = { signal, ...(conversation !== undefined && { conversation }), ...(onDelta && { onDelta }) }
  // A model may be user code that returns or throws synchronously.
  const reply = (async () => model.infer(request, call))()
  // A model that ignores its signal is left behind at once: another call can be made instead.
  return effects.time.wait(reply, limit ?? untilEnd)
}

/** The shorter one of the limit that a guard has set and the setting `timeoutMs`, which a model of the user may not know. */
function limitOf({ limit, request: { settings } }: SentRequest): ModelLimit | undefined {
  const ms = limit === undefined ? Infinity : Math.max(0, limit.until - performance.now())
  const timeoutMs = settings?.timeoutMs ?? Infinity
  if (timeoutMs < ms) {
    const message = `The model did not finish within ${timeoutMs} ms.`
    return new ModelLimit(timeoutMs, new AgentError('MODEL_TIMED_OUT', message, { value: { afterMs: timeoutMs } }))
  }
  if (limit === undefined) return undefined
  const message = `The model call was aborted: it exceeded the ${Math.round(limit.ms)} ms that "${limit.by}" allowed.`
  return new ModelLimit(ms, new AgentError('MODEL_FORBIDDEN', message, { value: { limitedBy: limit.by } }))
}

/** Errors of calls that had begun to answer. */
const begun = new WeakSet<object>()

export function noteBegun(thrown: unknown): void {
  if (typeof thrown === 'object' && thrown !== null) begun.add(thrown)
}

/** Whether the provider has probably billed a call that failed: it took too long, had begun to answer, or its answer cannot be used. */
export function isBilled(thrown: unknown): boolean {
  const isUnusable = thrown instanceof AgentError && thrown.code === 'MODEL_REPLY_INVALID'
  return isUnusable || isCutOff(thrown) || begun.has(Object(thrown) as object)
}

/** Whether a call was aborted because it took too long: its prompt was sent. */
function isCutOff(thrown: unknown): boolean {
  if (!(thrown instanceof AgentError) || !['MODEL_TIMED_OUT', 'MODEL_FORBIDDEN'].includes(thrown.code)) return false
  const { afterMs, limitedBy } = Object(thrown.value) as { readonly afterMs?: unknown; readonly limitedBy?: unknown }
  return afterMs !== undefined || limitedBy !== undefined
}

/** The time limit of a call. */
class ModelLimit implements WorkLimit {
  readonly ms: number
  readonly #error: AgentError
  readonly #controller = new AbortController()

  constructor(ms: number, error: AgentError) {
    this.ms = ms
    this.#error = error
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(): number {
    this.#controller.abort(this.#error)
    return 0
  }

  graceMs(): number {
    return 0
  }

  leave(_end: unknown, error = this.#error): AgentError {
    return error
  }
}

/** The model of a conversation: its own, or that of the agent. */
export function modelFor(parts: AgentParts, state: AgentState): LanguageModel {
  const chosen = state.metadata[MODEL_KEY]
  return typeof chosen === 'string' ? parts.toModel(chosen) : parts.model
}

export function nameOf({ provider, modelId }: LanguageModel): string {
  return `${provider}/${modelId}`
}

/** The part of a request from which its tokens are estimated. */
type Prompt = Pick<ModelRequest, 'system' | 'messages'>

/** The reply of a model as a response. Throws MODEL_REPLY_INVALID if it is not a reply. */
export function toCheckedReply(reply: ModelReply, model: LanguageModel, prompt: Prompt): InferenceResponse {
  const content = Array.isArray(reply?.content) ? plainContent(reply.content) : undefined
  if (!Array.isArray(content) || !areReplyParts(content) || !isFinishReason(reply.finishReason)) {
    throw new AgentError('MODEL_REPLY_INVALID', 'The model returned a value that is not a reply.', plainValue(reply))
  }
  const { finishReason, modelId } = reply
  const warnings: readonly string[] = Array.isArray(reply.warnings) ? reply.warnings.map(String) : []
  const isReported = isAmount(reply.usage?.inputTokens) && isAmount(reply.usage?.outputTokens)
  const usage = isReported ? reply.usage : estimatedUsage(reply, content, prompt)
  const notes = isReported || warnings.includes(USAGE_ESTIMATED) ? warnings : [...warnings, USAGE_ESTIMATED]
  return toBilledResponse({
    content,
    finishReason,
    usage: usageOf(usage, model),
    ...(typeof modelId === 'string' && { modelId }),
    ...(notes.length > 0 && { warnings: Object.freeze(notes) }),
  })
}

/** Of a model that does not report its usage, or not all of it: without an estimate, no limit would apply to its calls. */
function estimatedUsage({ usage }: ModelReply, content: readonly Part[], prompt: Prompt): Partial<TokenUsage> {
  const { inputTokens, outputTokens } = usage ?? {}
  return {
    ...usage,
    inputTokens: isAmount(inputTokens) ? inputTokens : estimateInput(prompt),
    outputTokens: isAmount(outputTokens) ? outputTokens : estimateTokens(content),
  }
}

function usageOf(usage: ModelReply['usage'], { cost }: LanguageModel): TokenUsage {
  const tokens = toTokens(usage ?? noTokens)
  if (typeof cost !== 'function' || isAmount(usage?.costUsd)) return tokens
  const costUsd = cost(tokens)
  if (isAmount(costUsd)) return toTokens({ ...tokens, costUsd })
  // Counted as zero, it would disable every limit on cost.
  throw new AgentError(
    'MODEL_INVALID',
    'The "cost" function of the model did not return an amount.',
    plainValue({ costUsd }),
  )
}

/** Arguments that are not JSON, or nested too deep, are replaced by a text, so that they fail the call and not the run. */
function plainContent(content: readonly unknown[]): Json | undefined {
  const plain = plainValue(content).value
  const usable = (part: unknown): unknown => {
    if (!isCall(part)) return part
    if (plain === undefined && plainValue([part]).value === undefined)
      return { ...part, input: '[arguments that are too large or nested too deep]' }
    return isFiniteJson(part['input']) ? part : { ...part, input: '[arguments with a number that is not JSON]' }
  }
  const used = content.map(usable)
  return plain !== undefined && used.every((part, i) => part === content[i]) ? plain : plainValue(used).value
}

function isCall(part: unknown): part is JsonObject {
  return isJsonObject(part) && part['type'] === 'tool-call'
}

/** Whether a value has no `NaN` and no `Infinity`, which would become null. */
function isFiniteJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return (Array.isArray(value) || isJsonObject(value) ? Object.values<unknown>(value) : []).every(isFiniteJson)
}

/** The value of an error, if it is JSON: an error must not be lost because of the value it carries. */
function plainValue(value: unknown): { readonly value?: Json } {
  try {
    return value === undefined ? {} : { value: toJson(value) }
  } catch {
    return {}
  }
}

/** The error of a call that a guard has forbidden. */
export function callForbidden({ source, message }: ContinuationEvaluation): AgentError {
  return new AgentError('MODEL_FORBIDDEN', `"${source}" forbade the call: ${message}`)
}

/** What is recorded of a model call, including the hooks around it: an answer or an error. */
export type ModelCallRecord = {
  readonly content?: readonly Part[]
  readonly finishReason?: FinishReason
  readonly modelId?: string
  readonly warnings?: readonly string[]
  readonly error?: ErrorText
  /** What it has cost, and what the answer alone has cost if that is not the same. */
  readonly usage: TokenUsage
  readonly ownUsage?: TokenUsage
  /** Whether the usage includes an estimate for a call that did not complete. */
  readonly isEstimated?: true
  /** What hooks around the call did and voted. */
  readonly trail?: readonly LedgerEntry[]
  readonly votes?: readonly ContinuationEvaluation[]
}

type Rest = { readonly isEstimated?: boolean } & Pick<ModelCallRecord, 'trail' | 'votes'>

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
  return { error: errorText(thrown, 'MODEL_FAILED'), usage, ...withoutEmpty(rest) }
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
