import { AgentError } from '../../errors.ts'
import { exactJson, isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { describeValue } from '../../values/describe-value.ts'
import type { List } from './list.ts'

/**
 * Options of a part by provider, for example a cache marker or the signature of reasoning. Other providers ignore them.
 */
type ForProviders = { readonly providerOptions?: JsonObject }

/** A text in a message. */
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

/** A message with one text. */
export function textMessage(role: Message['role'], text: string): Message {
  return Object.freeze({ role, content: Object.freeze([Object.freeze({ type: 'text' as const, text })]) })
}

/** The text of a message or response, without reasoning, files and calls; or its reasoning. */
export function textOf(content: readonly Part[], type: 'text' | 'reasoning' = 'text'): string {
  let text = ''
  for (let i = 0; i < content.length; i++) {
    const part = content[i]! // by index: frozen arrays are slow to iterate
    if (part.type === type) text += part.text
  }
  return text
}

/** Checks and freezes a string or a message. */
export function toMessage(value: unknown, what: string): Message {
  if (typeof value === 'string') return textMessage('user', value)
  const message = isJsonObject(value) ? exactJson(value, what) : value
  if (isMessage(message)) return message
  const isText = isJsonObject(message) && typeof message['content'] === 'string'
  const why = isText ? ' Its "content" is a string, not a list of parts.' : ''
  throw new AgentError(
    'INPUT_INVALID',
    `The ${what} must be a string or a message: { role, content: [{ type: 'text', text }] }, not ${describeValue(value)}.${why}`,
    { value },
  )
}

/** Checks the input of a run: a string, or a user message of texts and files. */
export function toInput(value: unknown): Message {
  const message = toMessage(value, 'input')
  const fits = message.content.every((part) => part.type === 'text' || part.type === 'file')
  if (message.role === 'user' && fits) return message
  throw new AgentError(
    'INPUT_INVALID',
    `The input must be a string, or a message with the role "user" that has only text and files.`,
    {
      value,
    },
  )
}

/** Converts messages to a list. Messages of the known list are trusted, the others are checked and frozen. */
export function toMessages(messages: Iterable<Message>, known: List<Message>): List<Message> {
  const all = [...messages]
  let same = 0
  while (same < all.length && same < known.length && all[same] === known.at(same)) same++
  // Most hooks keep the first or the last messages. In any other case all messages are checked again.
  const shift = known.length - all.length
  const isKnown = (each: Message, i: number): boolean =>
    each === known.at(i) || (shift > 0 && each === known.at(i + shift))
  const rest = all.slice(same).map((each, i) => (isKnown(each, same + i) ? each : toMessage(each, 'message')))
  return known.take(same).concat(rest)
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

/** Whether a model may reply with these parts. */
export function areReplyParts(values: readonly unknown[]): values is readonly Part[] {
  for (let i = 0; i < values.length; i++) if (!isReplyPart(values[i])) return false
  return true
}

/** A model must not write tool results: it would answer its own call. */
export function isReplyPart(value: unknown): value is Part {
  return isPart(value) && value.type !== 'tool-result'
}

function isText(value: Json | undefined): boolean {
  return typeof value === 'string'
}

/** Makes the ids of calls unique: results are matched by id, and a model may repeat or omit one. */
export function withUniqueIds(content: readonly Part[]): readonly Part[] {
  const only = content[0]
  if (content.length === 1 && (only!.type !== 'tool-call' || only!.toolCallId !== '')) return content
  const seen = new Set<string>()
  let changed = false
  const parts = content.map((part, index): Part => {
    if (part.type !== 'tool-call') return part
    const unique = uniqueId(part, index, seen)
    seen.add(unique)
    if (unique === part.toolCallId) return part
    changed = true
    return Object.freeze({ ...part, toolCallId: unique })
  })
  return changed ? Object.freeze(parts) : content
}

function uniqueId({ toolCallId }: ToolCallPart, index: number, seen: ReadonlySet<string>): string {
  if (toolCallId !== '' && !seen.has(toolCallId)) return toolCallId
  let id = `${toolCallId || 'call'}-${index}`
  while (seen.has(id)) id += '-'
  return id
}
