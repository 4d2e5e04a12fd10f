import type { InferenceResponse } from '../core/state/inference.ts'
import type { FilePart, Message, Part } from '../core/state/message.ts'
import { attributes } from './conventions.ts'

// Message content in the JSON format of the conventions. Only used if the option `content` is on.

type Texts = { readonly [attribute: string]: string }

export function systemContent(system: string): Texts {
  return system === '' ? {} : { [attributes.system]: JSON.stringify([{ type: 'text', content: system }]) }
}

export function inputContent(messages: Iterable<Message>): Texts {
  const written = [...messages].map(({ role, content }) => ({ role, parts: content.map(toPart) }))
  return { [attributes.inputMessages]: JSON.stringify(written) }
}

export function outputContent({ content, finishReason }: Pick<InferenceResponse, 'content' | 'finishReason'>): Texts {
  const message = { role: 'assistant', parts: content.map(toPart), finish_reason: finishReason }
  return { [attributes.outputMessages]: JSON.stringify([message]) }
}

function toPart(part: Part): object {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: part.text }
    case 'tool-call':
      return { type: 'tool_call', id: part.toolCallId, name: part.toolName, arguments: part.input }
    case 'tool-result':
      return { type: 'tool_call_response', id: part.toolCallId, response: part.output }
    case 'file':
      return toFile(part)
    default:
      return part satisfies never
  }
}

/** A file with a URL is named; for an inline file only the size is recorded, because every span would contain it again. */
function toFile({ mediaType, data }: FilePart): object {
  const kind = { modality: mediaType.split('/')[0], mime_type: mediaType }
  return /^https?:/.test(data) ? { type: 'uri', ...kind, uri: data } : { type: 'blob', ...kind, size: data.length }
}
