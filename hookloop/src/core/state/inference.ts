import { AgentError } from '../../errors.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { List, listIn, withItems } from './list.ts'
import { textOf, type Message, type Part } from './message.ts'
import { noTokens, type TokenUsage } from './usage.ts'

export const finishReasons = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other', 'withheld'] as const

/** Why a model stopped generating. `withheld`: a hook withheld the response. */
export type FinishReason = (typeof finishReasons)[number]

/** A tool as the model gets it. */
export type ToolDescription = { readonly name: string; readonly description: string; readonly inputSchema: JsonObject }

/** A request to a model, as hooks see it. `tools` are names; a hook may remove some, but not add unknown ones. */
export type InferenceRequest = {
  readonly model: LanguageModel
  readonly system: string
  readonly messages: readonly Message[]
  readonly tools: readonly string[]
  readonly toolChoice?: 'auto' | 'required' | 'none' | { readonly tool: string }
  readonly responseFormat?: JsonObject
  readonly settings?: ModelSettings
}

/** A request with the messages of a list. A model that does not read them costs nothing, however many they are. */
export function withMessages<R extends object>(
  request: R,
  messages: List<Message>,
): Readonly<Omit<R, 'messages'>> & { readonly messages: readonly Message[] } {
  return withItems(request, 'messages', messages)
}

/** The other fields of a request: a spread would read its messages. */
export function withoutMessages<R extends Pick<InferenceRequest, 'messages'>>(request: R): Omit<R, 'messages'> {
  const others: Partial<R> = {}
  for (const key of Object.keys(request) as (keyof R)[]) if (key !== 'messages') others[key] = request[key]
  return others as Omit<R, 'messages'>
}

/** The messages of a request as a list. */
export function messagesOf(request: Pick<InferenceRequest, 'messages'>): List<Message> {
  return (listIn(request) as List<Message> | undefined) ?? List.from(request.messages)
}

/** Settings of a model. A provider ignores settings that it does not support, with a warning. */
export type ModelSettings = {
  /** Passed on. Default: that of the provider. */
  readonly temperature?: number
  /** Passed on. Default: that of the provider. */
  readonly topP?: number
  /** Passed on. Default: that of the provider. */
  readonly topK?: number
  /** The length of an answer. Default: that of the provider. */
  readonly maxOutputTokens?: number
  /** Texts that end an answer. Default none. */
  readonly stopSequences?: readonly string[]
  /** Passed on. Default: that of the provider. */
  readonly presencePenalty?: number
  /** Passed on. Default: that of the provider. */
  readonly frequencyPenalty?: number
  /** Passed on. Default: that of the provider. */
  readonly seed?: number
  /** The reasoning effort, for models of specification v4; for others use `providerOptions`. Default: that of the provider. */
  readonly reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  /** Marks instructions and conversation for the prompt cache of Anthropic and Bedrock; others cache by themselves. Default false. */
  readonly cachePrompt?: boolean
  /** The time one call may take. Default 600,000; no limit for a model of your own. */
  readonly timeoutMs?: number
  /** The time between two parts of a stream, also before the first. Default: no limit. */
  readonly idleTimeoutMs?: number
  /** Options for one provider: `{ openai: { … } }`. Default none. */
  readonly providerOptions?: JsonObject
}

/** A change to a request: any of its fields, messages from an iterable, and a model in any form. */
export type RequestChange = Partial<Omit<InferenceRequest, 'messages' | 'model'>> & {
  readonly messages?: Iterable<Message>
  readonly model?: ModelSource
}

/** The response of a model, as hooks at `afterInference` see it. */
export type InferenceResponse = {
  readonly content: readonly Part[]
  readonly text: string
  readonly usage: TokenUsage
  readonly finishReason: FinishReason
  /** The model that replied, as its provider names it; it may be a dated version of the requested one. */
  readonly modelId?: string
  /** Warnings, such as an ignored setting or repaired arguments. */
  readonly warnings?: readonly string[]
}

/** A change to a response. Its usage cannot be changed. */
export type ResponseChange = Partial<Pick<InferenceResponse, 'content' | 'text' | 'finishReason'>>

/** A piece of a reply while it is streamed. */
export type InferenceDelta =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'reasoning'; readonly delta: string }
  /** A piece of the arguments of a call, as JSON text. The call is executed when it is complete. */
  | { readonly type: 'toolCallDelta'; readonly callId: string; readonly toolName: string; readonly delta: string }

/**
 * A model. Implement it to connect your own. `infer` must reject if it fails and if the signal aborts, report deltas to
 * `onDelta` if that is given, and return the same reply either way.
 *
 * @example
 * const echo: LanguageModel = {
 *   provider: 'acme',
 *   modelId: 'echo',
 *   infer: async ({ messages }) => ({ content: messages.at(-1)!.content, finishReason: 'stop' }),
 * }
 */
export type LanguageModel = {
  readonly provider: string
  readonly modelId: string
  /** How it enforces a schema; `native-alone`: only without tools. Default `tool`. */
  readonly structuredOutput?: 'native' | 'native-alone' | 'tool' | 'text'
  /**
   * The cost of usage in US dollars, or `reported` if each reply has it. With `unknown` a limit on cost stops the run,
   * because it could not be checked. Default `unknown`.
   */
  readonly cost?: 'unknown' | 'reported' | ((usage: TokenUsage) => number)
  infer(request: ModelRequest, call: ModelCall): Promise<ModelReply>
}

/** Details of a failed model call: the `value` of its error. */
export type ModelFailure = {
  readonly provider: string
  readonly model: string
  readonly status?: number
  /** The wait that the provider asks for. */
  readonly retryAfterMs?: number
}

/** The details of an error, if it is from a model call. Your own models may provide fewer. */
export function getModelFailure(error: unknown): Partial<ModelFailure> | undefined {
  const isOfModel = error instanceof AgentError && error.code.startsWith('MODEL_')
  return isOfModel && isJsonObject(error.value) ? error.value : undefined
}

/** A language model of the AI SDK, in version 2, 3 or 4 of its specification. */
export type AiSdkModel = {
  readonly specificationVersion: 'v2' | 'v3' | 'v4'
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

/** A model in any form: a `LanguageModel`, a model of the AI SDK, or a name such as `anthropic/claude-sonnet-5-5`. */
export type ModelSource = LanguageModel | AiSdkModel | string

/** Resolves a model source, or throws MODEL_INVALID, MODEL_UNKNOWN or MODEL_NOT_INSTALLED. */
export type ToModel = (source: ModelSource) => LanguageModel

/** What `LanguageModel.infer` gets: the request with the descriptions of its tools. */
export type ModelRequest = Omit<InferenceRequest, 'model' | 'tools'> & { readonly tools: readonly ToolDescription[] }
/** How `LanguageModel.infer` is called. */
export type ModelCall = {
  readonly signal: AbortSignal
  readonly onDelta?: (delta: InferenceDelta) => void
  /**
   * The id of the conversation: the same for all runs that continue it and for their subagents, another one for each new
   * run. Missing if the model is called outside a run.
   */
  readonly conversation?: string
}
/** What `LanguageModel.infer` returns. */
export type ModelReply = {
  readonly content: readonly Part[]
  readonly finishReason: FinishReason
  readonly usage?: Partial<TokenUsage>
  readonly modelId?: string
  readonly warnings?: readonly string[]
}

/** Converts a reply, whose content is frozen, to a response. */
export function toResponse(reply: ModelReply): InferenceResponse {
  return toBilledResponse({ ...reply, usage: Object.freeze({ ...noTokens, ...reply.usage }) })
}

/** The same for a reply with complete usage. The text of a response is the text of its content. */
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

/** Changes a response. A new text replaces all text parts; calls and other parts stay. */
export function changeResponse(response: InferenceResponse, change: ResponseChange): InferenceResponse {
  const isNew = change.text !== undefined && change.text !== response.text
  const content = change.content ?? (isNew ? withText(response.content, change.text) : response.content)
  return toBilledResponse({ ...response, content, finishReason: change.finishReason ?? response.finishReason })
}

/** Puts the text where the first one was: some providers require that reasoning precedes text. */
function withText(content: readonly Part[], text: string): readonly Part[] {
  const first = content.findIndex((part) => part.type === 'text')
  const at = first === -1 ? content.findLastIndex((part) => part.type === 'reasoning') + 1 : first
  const others = (part: Part): boolean => part.type !== 'text'
  return Object.freeze([...content.slice(0, at).filter(others), textPart(text), ...content.slice(at).filter(others)])
}

/** Replaces a withheld response by a note, without calls. Its usage stays. */
export function withholdResponse(response: InferenceResponse, why: string): InferenceResponse {
  return toBilledResponse({ ...response, content: Object.freeze([textPart(why)]), finishReason: 'withheld' })
}

function textPart(text: string): Part {
  return Object.freeze({ type: 'text', text })
}

/** Whether a value is the reason why a model ended its answer. */
export function isFinishReason(value: Json | undefined): value is FinishReason {
  return finishReasons.includes(value as FinishReason)
}
