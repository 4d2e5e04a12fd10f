import type { Json, JsonObject } from './json.ts'
import type { List } from './list.ts'
import { textOf, type Message, type Part } from './message.ts'
import { noTokens, type TokenUsage } from './usage.ts'

/** Why a model stopped writing. `withheld` is ours: a hook kept the answer from everyone. */
export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other' | 'withheld'

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
  readonly settings?: JsonObject
}

/** A change to a request: whichever fields, and messages as anything iterable. */
export type RequestChange = Partial<Omit<InferenceRequest, 'messages'>> & { readonly messages?: Iterable<Message> }

export type InferenceResponse = {
  readonly content: readonly Part[]
  readonly text: string
  readonly usage: TokenUsage
  readonly finishReason: FinishReason
}

/** A change to a response. What it cost stays: it was paid for. */
export type ResponseChange = Partial<Omit<InferenceResponse, 'usage'>>

/** What the model sends while it writes. */
export type InferenceDelta =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'reasoning'; readonly delta: string }

/**
 * The port to a model: one method, streamed when `onDelta` is there. It must reject when it fails and when the signal
 * aborts, and it must give the same response streamed or not.
 */
export type LanguageModel = {
  readonly provider: string
  readonly modelId: string
  infer(request: ModelRequest, call: ModelCall): Promise<ModelReply>
}

export type ModelRequest = Omit<InferenceRequest, 'model' | 'tools'> & { readonly tools: readonly ToolDescription[] }
export type ModelCall = { readonly signal: AbortSignal; readonly onDelta?: (delta: InferenceDelta) => void }
export type ModelReply = {
  readonly content: readonly Part[]
  readonly finishReason: FinishReason
  readonly usage?: Partial<TokenUsage>
}

const finishReasons: readonly string[] = [
  'stop',
  'length',
  'content-filter',
  'tool-calls',
  'error',
  'other',
  'withheld',
] satisfies FinishReason[]

/** A response whose text is the text of its content, which comes frozen. */
export function toResponse(reply: ModelReply): InferenceResponse {
  const { content } = reply
  return Object.freeze({
    content,
    text: textOf(content),
    usage: Object.freeze({ ...noTokens, ...reply.usage }),
    finishReason: reply.finishReason,
  })
}

/** A response with some of it replaced. A new text takes the place of all text parts; calls and the rest stay. */
export function changeResponse(response: InferenceResponse, change: ResponseChange): InferenceResponse {
  const content =
    change.content ??
    (change.text === undefined || change.text === response.text
      ? response.content
      : Object.freeze([textPart(change.text), ...response.content.filter((part) => part.type !== 'text')]))
  return toResponse({
    content,
    finishReason: change.finishReason ?? response.finishReason,
    usage: response.usage,
  })
}

/** What is left of a response that may not be seen: a note, no calls, and the usage that was paid for. */
export function withholdResponse(response: InferenceResponse, why: string): InferenceResponse {
  return toResponse({
    content: Object.freeze([textPart(why)]),
    finishReason: 'withheld',
    usage: response.usage,
  })
}

function textPart(text: string): Part {
  return Object.freeze({ type: 'text', text })
}

export function isFinishReason(value: Json | undefined): value is FinishReason {
  return typeof value === 'string' && finishReasons.includes(value)
}
