import type { AgentEvent, FilePart, Message } from '../../plugin.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { fromUserParts } from '../ai-sdk/ui-message.ts'
import { turnId } from '../turns.ts'
import type { AgUiEvent, AgUiMessage } from './event.ts'
import { AgUiMapper } from './to-events.ts'

/** The conversation that the events of a session amount to. Turns that were rewound are not part of it. */
export function toAgUiMessages(events: Iterable<AgentEvent>): readonly AgUiMessage[] {
  const mapper = new AgUiMapper()
  const turns = new Map<string, AgUiMessage[]>()
  for (const event of events) {
    if (event.type === 'rewound') {
      for (const run of event.runs) turns.delete(run)
      continue
    }
    const messages = turns.get(event.run) ?? []
    turns.set(event.run, messages)
    if (event.type === 'input') messages.push({ id: turnId(event), role: 'user', content: toContent(event.message) })
    for (const each of mapper.map(event)) add(messages, each)
  }
  return [...turns.values()].flat()
}

type Correction = Extract<AgUiEvent, { readonly type: 'CUSTOM' }>

/** Whether a client has received what is no longer true. AG-UI cannot take it back, except by sending the conversation. */
export function isCorrection(event: AgUiEvent): event is Correction {
  return event.type === 'CUSTOM' && ['hookloop.retracted', 'hookloop.arguments'].includes(event.name)
}

/**
 * The conversation after a correction. A client keeps reasoning that a snapshot lacks, so a first snapshot makes another message
 * of what is to be removed.
 */
export function toSnapshots({ value }: Correction, events: Iterable<AgentEvent>): readonly AgUiEvent[] {
  const messages = toAgUiMessages(events)
  const { messageIds = [] } = value as { readonly messageIds?: readonly string[] }
  const emptied = messageIds.map((id): AgUiMessage => ({ id, role: 'assistant', content: '' }))
  const snapshots = emptied.length === 0 ? [messages] : [[...messages, ...emptied], messages]
  return snapshots.map((each) => ({ type: 'MESSAGES_SNAPSHOT', messages: each }))
}

/** Changes messages as the reader of @ag-ui/client does. */
function add(messages: AgUiMessage[], event: AgUiEvent): void {
  switch (event.type) {
    case 'TEXT_MESSAGE_START':
      assistant(messages, event.messageId).content ??= ''
      return
    case 'TEXT_MESSAGE_CONTENT':
      assistant(messages, event.messageId).content += event.delta
      return
    case 'REASONING_MESSAGE_CONTENT': {
      const known = messages.find(({ id }) => id === event.messageId)
      if (known?.role === 'reasoning') known.content += event.delta
      else messages.push({ id: event.messageId, role: 'reasoning', content: event.delta })
      return
    }
    case 'TOOL_CALL_START': {
      const { toolCallId: id, toolCallName: name, parentMessageId = id, subagentRunId } = event
      const message = assistant(messages, parentMessageId, subagentRunId)
      message.toolCalls = [...(message.toolCalls ?? []), { id, type: 'function', function: { name, arguments: '' } }]
      return
    }
    case 'TOOL_CALL_ARGS':
      return changeArguments(messages, event.toolCallId, (before) => before + event.delta)
    case 'TOOL_CALL_RESULT': {
      const { type: _type, messageId: id, ...result } = event
      let at = messages.findIndex((message) => hasCall(message, event.toolCallId)) + 1
      while (messages[at]?.role === 'tool') at++
      messages.splice(at, 0, { id, ...result })
      return
    }
    case 'CUSTOM': {
      const { toolCallId, args, messageIds } = event.value as JsonObject
      if (event.name === 'hookloop.arguments')
        changeArguments(messages, toolCallId as string, () => JSON.stringify(args))
      else if (event.name === 'hookloop.retracted')
        messages.splice(0, Infinity, ...messages.filter(({ id }) => !(messageIds as readonly Json[]).includes(id)))
      return
    }
    default:
      return
  }
}

type Assistant = Extract<AgUiMessage, { readonly role: 'assistant' }>

function assistant(messages: AgUiMessage[], id: string, subagentRunId?: string): Assistant {
  const known = messages.find((message) => message.id === id)
  if (known?.role === 'assistant') return known
  const message: Assistant = { id, role: 'assistant', ...(subagentRunId !== undefined && { subagentRunId }) }
  messages.push(message)
  return message
}

function hasCall(message: AgUiMessage, toolCallId: string): message is Assistant {
  return message.role === 'assistant' && message.toolCalls?.some(({ id }) => id === toolCallId) === true
}

function changeArguments(messages: AgUiMessage[], toolCallId: string, change: (before: string) => string): void {
  const call = messages
    .find((message) => hasCall(message, toolCallId))
    ?.toolCalls?.find(({ id }) => id === toolCallId)?.function
  if (call !== undefined) call.arguments = change(call.arguments)
}

function toContent({ content }: Message): Json {
  const parts = content.flatMap((part): Json[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    return part.type === 'file' ? [toMediaPart(part)] : []
  })
  const [first, ...more] = content
  return first?.type === 'text' && more.length === 0 ? first.text : parts
}

const DATA_URL = /^data:[^,]*;base64,/

function toMediaPart({ mediaType: mimeType, data }: FilePart): Json {
  const [kind] = mimeType.split('/')
  const type = ['image', 'audio', 'video'].includes(kind!) ? kind! : 'document'
  const isUrl = !DATA_URL.test(data) && /^(?:https?|data):/.test(data)
  const source = isUrl ? { type: 'url', value: data } : { type: 'data', value: data.replace(DATA_URL, '') }
  return { type, source: { ...source, mimeType } }
}

/** The input that a message of a page is. Undefined: it has parts that are neither text nor media, or no parts. */
export function fromUserContent(content: Json | undefined): Message | undefined {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  return Array.isArray(parts) ? fromUserParts(parts.map(toUiPart)) : undefined
}

const anyOf: JsonObject = { image: 'image/*', audio: 'audio/*', video: 'video/*', document: 'application/pdf' }

/** The same part as `useChat` has it. */
function toUiPart(part: Json): Json {
  const { type, source } = isJsonObject(part) ? part : {}
  if (typeof type !== 'string' || !Object.hasOwn(anyOf, type) || !isJsonObject(source ?? null)) return part
  const { type: kind, value, mimeType = anyOf[type] } = source as JsonObject
  if (typeof value !== 'string' || typeof mimeType !== 'string' || (kind !== 'url' && kind !== 'data')) return null
  return { type: 'file', mediaType: mimeType, url: kind === 'url' ? value : `data:${mimeType};base64,${value}` }
}
