import type { AgentEvent, FilePart, Message, TextPart } from '../../plugin.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { ShownOptions } from '../shown.ts'
import { turnId } from '../turns.ts'
import { ChunkMapper } from './to-chunks.ts'
import type { UiChunk } from './ui-chunk.ts'

/** A message of a conversation as `useChat` has it. */
type UiMessage = {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly metadata?: JsonObject
  readonly parts: readonly UiPart[]
}

type UiPart = { readonly type: string; readonly [field: string]: Json | undefined }

/** The conversation that the events of a session amount to. Turns that were rewound are not part of it. */
export function toUiMessages(
  events: Iterable<AgentEvent>,
  mayAnswer?: ShownOptions['mayAnswer'],
): readonly UiMessage[] {
  const mapper = new ChunkMapper({ ...(mayAnswer !== undefined && { mayAnswer }) })
  const turns = new Map<string, { input: readonly UiMessage[]; readonly answer: MessageBuilder }>()
  for (const event of events) {
    if (event.type === 'rewound') {
      for (const run of event.runs) turns.delete(run)
      continue
    }
    const turn = turns.get(event.run) ?? { input: [], answer: new MessageBuilder(event.run) }
    turns.set(event.run, turn)
    if (event.type === 'input') turn.input = [toUserMessage(event.message, turnId(event))]
    for (const chunk of mapper.map(event)) turn.answer.add(chunk)
  }
  return [...turns.values()].flatMap(({ input, answer }) => [...input, ...answer.messages()])
}

function toUserMessage({ content }: Message, id: string): UiMessage {
  return { id, role: 'user', parts: content.flatMap((part) => toUserPart(part)) }
}

function toUserPart(part: Message['content'][number]): readonly UiPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  if (part.type !== 'file') return []
  const { mediaType, data, filename } = part
  const url = /^(?:https?|data):/.test(data) ? data : `data:${mediaType};base64,${data}`
  return [{ type: 'file', mediaType, url, ...(filename !== undefined && { filename }) }]
}

/** The input that a message of a page is. Undefined: it has parts that are neither text nor a file, or no parts. */
export function fromUserParts(parts: readonly unknown[]): Message | undefined {
  const content = parts.map(fromUserPart)
  const isInput = content.length > 0 && content.every((part) => part !== undefined)
  return isInput ? { role: 'user', content } : undefined
}

function fromUserPart(part: unknown): TextPart | FilePart | undefined {
  const { type, text, url, mediaType, filename } = Object(part) as { readonly [field: string]: unknown }
  if (type === 'text') return typeof text === 'string' ? { type, text } : undefined
  if (type !== 'file' || typeof mediaType !== 'string' || typeof url !== 'string') return undefined
  if (!/^(?:https|data):/i.test(url)) return undefined
  return { type, mediaType, data: url, ...(typeof filename === 'string' && { filename }) }
}

const noOutput = { output: undefined, preliminary: undefined }

type Draft = { type: string; [field: string]: Json | undefined }

/** Builds a message from chunks, as the reader of the `ai` package does. */
class MessageBuilder {
  #id: string
  #metadata: JsonObject | undefined
  #parts: Draft[] = []
  readonly #blocks = new Map<string, Draft>()

  constructor(id: string) {
    this.#id = id
  }

  /** The message; none if it has neither parts nor metadata. */
  messages(): readonly UiMessage[] {
    if (this.#parts.length === 0 && this.#metadata === undefined) return []
    const metadata = this.#metadata && { metadata: this.#metadata }
    return [{ id: this.#id, role: 'assistant', ...metadata, parts: this.#parts }]
  }

  add(chunk: UiChunk): void {
    switch (chunk.type) {
      case 'start':
        this.#id = chunk.messageId
        return
      case 'start-step':
        this.#parts.push({ type: 'step-start' })
        return
      case 'reset-step':
        this.#parts.splice(this.#parts.findLastIndex(({ type }) => type === 'step-start') + 1)
        return
      case 'text-start':
      case 'reasoning-start': {
        const type = chunk.type === 'text-start' ? 'text' : 'reasoning'
        const block: Draft = { type, ...(type === 'reasoning' && { id: chunk.id }), text: '', state: 'streaming' }
        this.#blocks.set(chunk.id, block)
        this.#parts.push(block)
        return
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const block = this.#blocks.get(chunk.id)
        if (block !== undefined) block['text'] = (block['text'] as string) + chunk.delta
        return
      }
      case 'text-end':
      case 'reasoning-end': {
        const block = this.#blocks.get(chunk.id)
        if (block !== undefined) block['state'] = 'done'
        return
      }
      case 'tool-input-start':
      case 'tool-input-available':
        return this.#addCall(chunk)
      case 'tool-approval-request': {
        const { approvalId: id, approvalDescriptor: descriptor, reason: requestReason, isAutomatic } = chunk
        const automatic = isAutomatic === true ? { isAutomatic } : {}
        const approval = { id, requestReason, ...(descriptor && { descriptor }), ...automatic }
        return this.#change(chunk.toolCallId, { state: 'approval-requested', approval })
      }
      case 'tool-approval-response': {
        const part = this.#parts.find(
          ({ approval }) => (approval as JsonObject | undefined)?.['id'] === chunk.approvalId,
        )
        const { approved, reason } = chunk
        const approval = { ...(part?.['approval'] as JsonObject), approved, ...(reason !== undefined && { reason }) }
        Object.assign(part ?? {}, { state: 'approval-responded', approval })
        return
      }
      case 'tool-output-available': {
        const { output, preliminary } = chunk
        return this.#change(chunk.toolCallId, { state: 'output-available', output, preliminary })
      }
      case 'tool-output-error':
        return this.#change(chunk.toolCallId, { state: 'output-error', errorText: chunk.errorText, ...noOutput })
      case 'tool-output-denied':
        return this.#change(chunk.toolCallId, { state: 'output-denied' })
      case 'message-metadata':
      case 'finish':
        this.#metadata =
          chunk.messageMetadata === undefined ? this.#metadata : { ...this.#metadata, ...chunk.messageMetadata }
        return
      case 'tool-input-delta': // a page that is loaded later does not need half a JSON text
      case 'finish-step':
      case 'data-hook':
      case 'error':
      case 'abort':
        return
      default:
        chunk satisfies never
    }
  }

  #addCall(chunk: Extract<UiChunk, { readonly type: 'tool-input-start' | 'tool-input-available' }>): void {
    const { toolCallId, toolName } = chunk
    const state = chunk.type === 'tool-input-start' ? 'input-streaming' : 'input-available'
    const input = chunk.type === 'tool-input-available' ? { input: chunk.input } : {}
    const title = chunk.type === 'tool-input-available' && chunk.title !== undefined ? { title: chunk.title } : {}
    const known = this.#find(toolCallId)
    if (known !== undefined) Object.assign(known, { state, ...input, ...title })
    else this.#parts.push({ type: `tool-${toolName}`, toolCallId, state, ...title, ...input })
  }

  #change(toolCallId: string, change: { readonly [field: string]: Json | undefined }): void {
    Object.assign(this.#find(toolCallId) ?? {}, change)
  }

  #find(toolCallId: string): Draft | undefined {
    return this.#parts.find((part) => part['toolCallId'] === toolCallId)
  }
}
