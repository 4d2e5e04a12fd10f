import { AgentError } from '../errors.ts'
import { isJsonObject, type Json, type JsonObject } from './json.ts'
import type { List } from './list.ts'
import { textOf, type Message, type Part } from './message.ts'
import { noTokens, type TokenUsage } from './usage.ts'

export const finishReasons = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other', 'withheld'] as const

/** Why a model stopped generating. `withheld`: a hook withheld the response. */
export type FinishReason = (typeof finishReasons)[number]

/** A tool as a model sees it. */
export type ToolDescription = { readonly name: string; readonly description: string; readonly inputSchema: JsonObject }

/** What goes to the model. `tools` are names; a hook may take some away, never add one the agent does not have. */
export type InferenceRequest = {
  readonly model: LanguageModel
  readonly system: string
  readonly messages: List<Message>
  readonly tools: readonly string[]
  readonly toolChoice?: 'auto' | 'required' | 'none' | { readonly tool: string }
  readonly responseFormat?: JsonObject
  readonly settings?: ModelSettings
}

/** Settings for the model. What a provider does not know it ignores, with a warning. */
export type ModelSettings = {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly maxOutputTokens?: number
  readonly stopSequences?: readonly string[]
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly seed?: number
  /** How hard to think. */
  readonly reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  /** Marks what stays the same, for providers that cache only what is marked. Others cache by themselves. */
  readonly cachePrompt?: boolean
  /** How long one call may take in all. Default 600,000 ms. */
  readonly timeoutMs?: number
  /** How long a stream may be silent, before its first piece as well. No default. */
  readonly idleTimeoutMs?: number
  /** What only one provider understands: `{ openai: { … } }`. */
  readonly providerOptions?: JsonObject
} & JsonObject

/** A change to a request: whichever fields, messages as anything iterable, and a model in any form it comes in. */
export type RequestChange = Partial<Omit<InferenceRequest, 'messages' | 'model'>> & {
  readonly messages?: Iterable<Message>
  readonly model?: ModelSource
}

export type InferenceResponse = {
  readonly content: readonly Part[]
  readonly text: string
  readonly usage: TokenUsage
  readonly finishReason: FinishReason
  /** The model that answered, as its provider calls it; it may be a dated version of the one that was asked. */
  readonly modelId?: string
  /** What the provider, or the way to it, had to say: a setting that was ignored, arguments that were mended. */
  readonly warnings?: readonly string[]
}

/** A change to a response. What it cost stays: it was paid for. */
export type ResponseChange = Partial<Pick<InferenceResponse, 'content' | 'text' | 'finishReason'>>

/** What the model sends while it writes. */
export type InferenceDelta =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'reasoning'; readonly delta: string }
  /** A piece of the arguments of a call, as JSON text. The call is made when it is whole. */
  | { readonly type: 'toolCallDelta'; readonly callId: string; readonly toolName: string; readonly delta: string }

/**
 * The port to a model: one method, streamed when `onDelta` is there. It must reject when it fails and when the signal
 * aborts, and it must give the same response streamed or not.
 */
export type LanguageModel = {
  readonly provider: string
  readonly modelId: string
  /** How it can be held to a schema; `native-alone` means: only when it is offered no tools. Default `tool`. */
  readonly structuredOutput?: 'native' | 'native-alone' | 'tool' | 'text'
  /**
   * What such usage costs, in US dollars, or `reported` when the model says it with each answer. Missing or `unknown`
   * means that nobody knows, so that a limit on cost can say so instead of never applying.
   */
  readonly cost?: 'unknown' | 'reported' | ((usage: TokenUsage) => number)
  infer(request: ModelRequest, call: ModelCall): Promise<ModelReply>
}

/** What is known of a model call that failed: the `value` of its error. */
export type ModelFailure = {
  readonly provider: string
  readonly model: string
  readonly status?: number
  /** How long the provider asks to wait. */
  readonly retryAfterMs?: number
}

/** What is known of a failure, if it is one of a model call; models of your own may say less than ours. */
export function getModelFailure(error: unknown): Partial<ModelFailure> | undefined {
  const isOfModel = error instanceof AgentError && error.code.startsWith('MODEL_')
  return isOfModel && isJsonObject(error.value) ? error.value : undefined
}

/** As much of a language model of the AI SDK as tells it apart; the adapter knows the rest. */
export type AiSdkModel = {
  readonly specificationVersion: 'v2' | 'v3' | 'v4'
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

/** A model in any form it may be given in: ours, one of the AI SDK, or a name such as `anthropic/claude-sonnet-5-5`. */
export type ModelSource = LanguageModel | AiSdkModel | string

/** Makes a model of a source, or throws MODEL_INVALID, MODEL_UNKNOWN or MODEL_NOT_INSTALLED. */
export type ToModel = (source: ModelSource) => LanguageModel

export type ModelRequest = Omit<InferenceRequest, 'model' | 'tools'> & { readonly tools: readonly ToolDescription[] }
export type ModelCall = { readonly signal: AbortSignal; readonly onDelta?: (delta: InferenceDelta) => void }
export type ModelReply = {
  readonly content: readonly Part[]
  readonly finishReason: FinishReason
  readonly usage?: Partial<TokenUsage>
  readonly modelId?: string
  readonly warnings?: readonly string[]
}

/** A response to a reply whose content comes frozen. */
export function toResponse(reply: ModelReply): InferenceResponse {
  return toBilledResponse({ ...reply, usage: Object.freeze({ ...noTokens, ...reply.usage }) })
}

/** The same for a reply that says everything about its usage. The text of a response is the text of its content. */
export function toBilledResponse(reply: ModelReply & { readonly usage: TokenUsage }): InferenceResponse {
  const { content, finishReason, usage, modelId, warnings } = reply
  return Object.freeze({
    content,
    text: textOf(content),
    usage,
    finishReason,
    ...(modelId !== undefined && { modelId }),
    ...(warnings !== undefined && warnings.length > 0 && { warnings }),
  })
}

/** A response with some of it replaced. A new text takes the place of all text parts; calls and the rest stay. */
export function changeResponse(response: InferenceResponse, change: ResponseChange): InferenceResponse {
  const isNew = change.text !== undefined && change.text !== response.text
  const content = change.content ?? (isNew ? withText(response.content, change.text) : response.content)
  return toBilledResponse({ ...response, content, finishReason: change.finishReason ?? response.finishReason })
}

/** Where the first text was: some providers insist that a model's thoughts come before its words. */
function withText(content: readonly Part[], text: string): readonly Part[] {
  const first = content.findIndex((part) => part.type === 'text')
  const at = first === -1 ? content.findLastIndex((part) => part.type === 'reasoning') + 1 : first
  const others = (part: Part): boolean => part.type !== 'text'
  return Object.freeze([...content.slice(0, at).filter(others), textPart(text), ...content.slice(at).filter(others)])
}

/** What is left of a response that may not be seen: a note, no calls, and the usage that was paid for. */
export function withholdResponse(response: InferenceResponse, why: string): InferenceResponse {
  return toBilledResponse({ ...response, content: Object.freeze([textPart(why)]), finishReason: 'withheld' })
}

function textPart(text: string): Part {
  return Object.freeze({ type: 'text', text })
}

export function isFinishReason(value: Json | undefined): value is FinishReason {
  return finishReasons.includes(value as FinishReason)
}
