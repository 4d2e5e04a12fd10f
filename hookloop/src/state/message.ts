import { AgentError } from '../errors.ts'
import { exactJson, isJsonObject, type Json, type JsonObject } from './json.ts'
import { List } from './list.ts'

/**
 * What a provider is told about a part, or wants back with it, by provider: a cache marker, the signature of a thought.
 * Other providers ignore it.
 */
type ForProviders = { readonly providerOptions?: JsonObject }

export type TextPart = ForProviders & { readonly type: 'text'; readonly text: string }
export type ReasoningPart = ForProviders & { readonly type: 'reasoning'; readonly text: string }
/** An image, a document, audio. `data` is base64 or a URL (`https:`, `data:`). */
export type FilePart = ForProviders & {
  readonly type: 'file'
  readonly mediaType: string
  readonly data: string
  readonly filename?: string
}
export type ToolCallPart = ForProviders & {
  readonly type: 'tool-call'
  readonly toolCallId: string
  readonly toolName: string
  readonly input: Json
}
export type ToolResultPart = ForProviders & {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  readonly output: Json
  readonly isError?: true
}
/** A part of a message: text, reasoning, a file, a tool call or a tool result. */
export type Part = TextPart | ReasoningPart | FilePart | ToolCallPart | ToolResultPart

/** A message of a conversation, in the format of the AI SDK, as frozen JSON. */
export type Message = {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: readonly Part[]
}

export function textMessage(role: Message['role'], text: string): Message {
  return Object.freeze({ role, content: Object.freeze([Object.freeze({ type: 'text' as const, text })]) })
}

/** The text of a message or of a response, without reasoning, files and calls. */
export function textOf(content: readonly Part[]): string {
  let text = ''
  for (const part of content) if (part.type === 'text') text += part.text
  return text
}

/** A text or a message from outside, checked and frozen. */
export function toMessage(value: unknown, what: string): Message {
  if (typeof value === 'string') return textMessage('user', value)
  const message = exactJson(value, what)
  if (isMessage(message)) return message
  throw new AgentError(
    'INPUT_INVALID',
    `The ${what} is neither a text nor a message. Pass a string, or { role, content: [{ type: 'text', text }] }.`,
    { value },
  )
}

/** What a user says: a text, or a user message of texts and files. */
export function toInput(value: unknown): Message {
  const message = toMessage(value, 'input')
  const fits = message.content.every((part) => part.type === 'text' || part.type === 'file')
  if (message.role === 'user' && fits) return message
  throw new AgentError('INPUT_INVALID', `An input is a text, or a message of role "user" with texts and files.`, {
    value,
  })
}

/** Messages from outside as a list: what is in the known list already is trusted, the rest is checked and frozen. */
export function toMessages(messages: Iterable<Message>, known: List<Message>): List<Message> {
  if (messages instanceof List && known.extends(messages)) return messages
  const shared = messages instanceof List && messages.extends(known) ? known : List.empty<Message>()
  const rest = messages instanceof List ? messages.slice(shared.length) : [...messages]
  // A window on the end or the beginning is what most hooks make; whatever else they bring is checked again.
  const shift = known.length - rest.length
  const isKnown = (each: Message, i: number): boolean =>
    each === known.at(i) || (shift > 0 && each === known.at(i + shift))
  return shared.concat(rest.map((each, i) => (isKnown(each, i) ? each : toMessage(each, 'message'))))
}

export function isMessage(value: unknown): value is Message {
  return (
    isJsonObject(value) &&
    ['system', 'user', 'assistant', 'tool'].includes(value['role'] as string) &&
    Array.isArray(value['content']) &&
    value['content'].every(isPart)
  )
}

export function isPart(value: unknown): value is Part {
  if (!isJsonObject(value)) return false
  if (value['providerOptions'] !== undefined && !isJsonObject(value['providerOptions'])) return false
  switch (value['type']) {
    case 'text':
    case 'reasoning':
      return isText(value['text'])
    case 'file':
      return isText(value['mediaType']) && isText(value['data'])
    case 'tool-call':
      return isText(value['toolCallId']) && isText(value['toolName']) && value['input'] !== undefined
    case 'tool-result':
      return isText(value['toolCallId']) && isText(value['toolName']) && value['output'] !== undefined
    default:
      return false
  }
}

/** Whether a model may answer with these. */
export function areReplyParts(values: readonly unknown[]): values is readonly Part[] {
  for (const value of values) if (!isReplyPart(value)) return false // on frozen lists, `every` takes twice as long
  return true
}

/** Results come from tools: a model that writes one would answer its own call. */
export function isReplyPart(value: unknown): value is Part {
  return isPart(value) && value.type !== 'tool-result'
}

function isText(value: Json | undefined): boolean {
  return typeof value === 'string'
}
