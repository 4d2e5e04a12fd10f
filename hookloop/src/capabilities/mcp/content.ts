import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { FilePart, TextPart } from '../../plugin.ts'
import { cleanText } from './clean-text.ts'

const MAX_PARTS = 10_000

/** The content that a server sent, as message parts. Unknown kinds become a text that says so. */
export function toParts(content: unknown): readonly (TextPart | FilePart)[] {
  return firstOf(content, toPart, (more) => text(`[… ${more} more blocks left out …]`))
}

/** The contents of a resource as message parts. */
export function toResourceParts(contents: unknown): readonly (TextPart | FilePart)[] {
  return firstOf(contents, resourcePart, (more) => text(`[… ${more} more contents left out …]`))
}

/** The objects of a list that a server sent, converted. Of a long list the first ones, and how many more there are. */
export function firstOf<T>(list: unknown, convert: (item: JsonObject) => T, rest: (more: number) => T): readonly T[] {
  const items = objectsIn(list)
  const first = items.slice(0, MAX_PARTS).map(convert)
  const more = items.length - first.length
  return more === 0 ? first : [...first, rest(more)]
}

/** The content as one text for the model. A file is shown as its type and size. */
export function toText(content: unknown): string {
  return toParts(content).map(partText).join('\n')
}

function toPart(block: JsonObject): TextPart | FilePart {
  switch (block['type']) {
    case 'text':
      return text(textOf(block['text']))
    case 'image':
    case 'audio':
      return file(block['data'], block['mimeType'])
    case 'resource':
      return resourcePart(isJsonObject(block['resource']) ? block['resource'] : {})
    case 'resource_link':
      return text(`[resource ${label(block['uri'])} ${label(block['title'] ?? block['name'])}]`)
    default:
      return text(`[content of an unknown kind: ${label(block['type'])}]`)
  }
}

/** One part of a resource: a text or a file. */
function resourcePart(resource: JsonObject): TextPart | FilePart {
  if (typeof resource['text'] === 'string') return text(resource['text'])
  if (typeof resource['blob'] !== 'string') return text(`[resource ${label(resource['uri'])} without content]`)
  return file(resource['blob'], resource['mimeType'], nameOf(resource['uri']))
}

function file(data: unknown, mimeType: unknown, filename?: string): TextPart | FilePart {
  if (typeof data !== 'string' || !BASE64.test(data)) return text('[a file that is not base64]')
  const mediaType = typeof mimeType === 'string' && MEDIA_TYPE.test(mimeType) ? mimeType : 'application/octet-stream'
  return { type: 'file', mediaType, data, ...(filename !== undefined && { filename }) }
}

const BASE64 = /^[A-Za-z0-9+/=\s]*$/
const MEDIA_TYPE = /^[a-z0-9.+-]{1,64}\/[a-z0-9.+-]{1,64}$/i

export function partText(part: TextPart | FilePart): string {
  if (part.type === 'text') return part.text
  const bytes = Math.floor((part.data.length * 3) / 4)
  return `[${part.mediaType}${part.filename === undefined ? '' : ` ${part.filename}`}, ${bytes} bytes, not shown]`
}

/** The objects of a list that a server sent. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function textOf(value: Json | undefined): string {
  if (typeof value === 'string') return value.toWellFormed()
  return `[a text block whose "text" is not a string: it is ${kindOf(value)}]`
}

function kindOf(value: Json | undefined): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : isJsonObject(value) ? 'an object' : `a ${typeof value}`
}

const MAX_LABEL = 500

/** A name or a URI on one line. */
export function label(value: unknown): string {
  return typeof value === 'string' ? cleanText(value, MAX_LABEL).replace(/\s+/g, ' ') : ''
}

function nameOf(uri: Json | undefined): string | undefined {
  return label(uri).split(/[/\\]/).at(-1)?.split(/[?#]/)[0] || undefined
}

function text(value: string): TextPart {
  return { type: 'text', text: value }
}
