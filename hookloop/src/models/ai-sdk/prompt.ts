import type { LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { ModelRequest } from '../../core/state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import {
  textOf,
  type FilePart,
  type Message,
  type Part,
  type TextPart,
  type ToolCallPart,
  type ToolResultPart,
} from '../../core/state/message.ts'
import type { ToolNames } from './tool-names.ts'

type PromptOptions = { readonly version: 'v2' | 'v3' | 'v4'; readonly cache: boolean }

/**
 * A conversation in the form that every provider accepts: each call is directly followed by its result, no result is
 * without its call, nothing is empty, the system prompt is one message at the start, and neither the first nor the last
 * message is the model's.
 */
export function toPrompt(
  { system, messages: all }: ModelRequest,
  names: ToolNames,
  options: PromptOptions,
): LanguageModelV4Prompt {
  const firstTurn = all.findIndex((message) => message.role !== 'system')
  const turns = firstTurn === -1 ? [] : all.slice(firstTurn)
  const ids = new CallIds()
  const prompt = turns.flatMap((message, at) => toMessages(message, { following: turns, at, names, ids, options }))
  if (prompt[0]?.role === 'assistant') prompt.unshift(userText('(Earlier messages are omitted.)'))
  if (prompt.length === 0 || prompt.at(-1)?.role === 'assistant') prompt.push(userText('Continue.'))
  const first = all.slice(0, all.length - turns.length).map(({ content }) => textOf(content))
  const instructions = [system, ...first].filter(hasText).join('\n\n').toWellFormed()
  if (instructions !== '') prompt.unshift({ role: 'system', content: instructions })
  return options.cache ? withCacheMarkers(prompt) : prompt
}

const MAX_ID_CHARS = 64

/**
 * Makes call ids that every provider accepts: letters, digits, _ and -, at most 64, unique in the whole conversation, even
 * if it comes from another provider or from one that restarts its numbering in every reply.
 */
class CallIds {
  readonly #taken = new Set<string>()
  readonly #counts = new Map<string, number>()

  /** The id to send. Call it in the order of the conversation, so that ids are the same in each request. */
  next(id: string): string {
    const safe = id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_ID_CHARS) || '_'
    let [unique, n] = [safe, this.#counts.get(safe) ?? 1]
    while (this.#taken.has(unique)) unique = `${safe.slice(0, MAX_ID_CHARS - 9)}_${++n}`
    this.#counts.set(safe, n)
    this.#taken.add(unique)
    return unique
  }
}

function userText(text: string): LanguageModelV4Message {
  return { role: 'user', content: [{ type: 'text', text }] }
}

type Place = {
  readonly following: readonly Message[]
  readonly at: number
  readonly names: ToolNames
  readonly ids: CallIds
  readonly options: PromptOptions
}

function toMessages(message: Message, place: Place): LanguageModelV4Message[] {
  switch (message.role) {
    case 'tool':
      return [] // sent with the calls they belong to
    case 'system':
    case 'user': {
      // Not every provider accepts system messages in the middle of a conversation, so they are sent as user messages.
      const content = message.content.flatMap((part) => userPart(part, place.options))
      return content.length === 0 ? [] : [{ role: 'user', content }]
    }
    case 'assistant': {
      const calls: SentCall[] = []
      const content = message.content.flatMap((part) => assistantPart(part, place, calls))
      // Not every provider accepts reasoning that nothing follows.
      if (content.every((part) => part.type === 'reasoning')) return []
      const said: LanguageModelV4Message = { role: 'assistant', content }
      return calls.length === 0 ? [said] : [said, { role: 'tool', content: resultsOf(calls, place) }]
    }
    default:
      return message.role satisfies never
  }
}

type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content']
type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type ToolContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content']

/** A call and the id it is sent with. */
type SentCall = { readonly call: ToolCallPart; readonly sentId: string }

/** Some providers reject text that is only white space. */
function hasText(text: string): boolean {
  return text.trim() !== ''
}

function textOrNothing(part: TextPart) {
  return hasText(part.text) ? [{ type: 'text' as const, text: part.text.toWellFormed(), ...optionsOf(part) }] : []
}

function userPart(part: Part, options: PromptOptions): UserContent {
  if (part.type === 'text') return textOrNothing(part)
  return part.type === 'file' ? [filePart(part, options)] : []
}

function assistantPart(part: Part, { names, ids, options }: Place, calls: SentCall[]): AssistantContent {
  switch (part.type) {
    case 'text':
      return textOrNothing(part)
    case 'reasoning':
      return [{ type: 'reasoning', text: part.text, ...optionsOf(part) }]
    case 'file':
      return [filePart(part, options)]
    case 'tool-call': {
      const { toolCallId, toolName, input } = part
      // Providers require an object: arguments that could not be read are wrapped in one, as the model wrote them.
      const shown = isJsonObject(input) ? input : { unreadable: input }
      const sentId = ids.next(toolCallId)
      calls.push({ call: part, sentId })
      return [
        {
          type: 'tool-call',
          toolCallId: sentId,
          toolName: names.sent(toolName),
          input: wellFormed(shown),
          ...optionsOf(part),
        },
      ]
    }
    case 'tool-result':
      return []
    default:
      return part satisfies never
  }
}

const UNKNOWN_RESULT = 'The outcome of this call is unknown. It may have taken effect.'

/** A result for every call, in the order of the calls, from anywhere before the next assistant message. */
function resultsOf(calls: readonly SentCall[], { following, at, names }: Place): ToolContent {
  const found = new Map<string, ToolResultPart>()
  for (let i = at + 1; i < following.length && following[i]!.role !== 'assistant'; i++) {
    for (const part of following[i]!.content) {
      if (part.type === 'tool-result' && !found.has(part.toolCallId)) found.set(part.toolCallId, part)
    }
  }
  return calls.map(({ call: { toolCallId, toolName }, sentId }) => {
    const result = found.get(toolCallId)
    return {
      type: 'tool-result' as const,
      toolCallId: sentId,
      toolName: names.sent(toolName),
      output: outputOf(result),
      ...(result !== undefined && optionsOf(result)),
    }
  })
}

function outputOf(
  result: ToolResultPart | undefined,
): ToolContent[number] extends infer P ? (P extends { output: infer O } ? O : never) : never {
  if (result === undefined) return { type: 'error-text', value: UNKNOWN_RESULT }
  const { isError } = result
  const output = wellFormed(result.output)
  if (typeof output === 'string') return { type: isError === true ? 'error-text' : 'text', value: output }
  return { type: isError === true ? 'error-json' : 'json', value: output as never }
}

/** Not every provider accepts half of a surrogate pair, which a hook that cuts text may leave. */
function wellFormed(value: Json): Json {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)]))
}

function filePart(part: FilePart, { version }: PromptOptions): UserContent[number] & { type: 'file' } {
  const { mediaType, filename, data } = part
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(data) && URL.canParse(data) ? new URL(data) : undefined
  const bytes = url === undefined ? base64Of(data) : ''
  const v4 = url === undefined ? { type: 'data' as const, data: bytes } : { type: 'url' as const, url }
  return {
    type: 'file',
    mediaType,
    ...(filename !== undefined && { filename }),
    data: version === 'v4' ? v4 : ((url ?? bytes) as never), // earlier versions take the bytes or the URL itself
    ...optionsOf(part),
  }
}

/** The bytes of a `data:` URL, which holds base64 or text; anything else is base64 already. */
function base64Of(data: string): string {
  if (!/^data:/i.test(data)) return data
  const [head, body] = [data.slice(0, data.indexOf(',')), data.slice(data.indexOf(',') + 1)]
  return /;base64$/i.test(head) ? body : Buffer.from(decoded(body)).toString('base64')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

type ProviderOptions = { readonly [provider: string]: { readonly [key: string]: never } }

function optionsOf({ providerOptions }: { readonly providerOptions?: JsonObject }): {
  providerOptions?: ProviderOptions
} {
  return providerOptions === undefined ? {} : { providerOptions: providerOptions as ProviderOptions }
}

const cacheMarker = {
  anthropic: { cacheControl: { type: 'ephemeral' } },
  bedrock: { cachePoint: { type: 'default' } },
}

/** Marks the end of the part that later requests repeat: the system prompt, and the conversation so far. */
function withCacheMarkers(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  const lastSystem = prompt.findLastIndex((message) => message.role === 'system')
  const marked = new Set([lastSystem, prompt.length - 1])
  return prompt.map((message, i) =>
    marked.has(i) ? { ...message, providerOptions: { ...message.providerOptions, ...cacheMarker } } : message,
  )
}
