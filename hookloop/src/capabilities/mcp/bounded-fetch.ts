import { GrowingBuffer } from '../../system/processes/capped-output.ts'
import { LineReader } from './line-reader.ts'

type Fetch = typeof globalThis.fetch

export type Bounds = {
  /** The limit for each body, or for each event of a stream. */
  readonly maxBytes: number
  /** The text that the SDK gets in place of a text with messages; undefined if it has no valid message. */
  readonly rewrite: (text: string) => string | undefined
  /** Learns why an answer cannot be read. */
  readonly rejected: (why: string) => void
}

/** Only messages of errors are read from other bodies. */
const MAX_OTHER_CHARS = 8_192

/** A fetch whose answers are limited in size, and whose messages are rewritten before the SDK parses and validates them. */
export function boundedFetch(fetch: Fetch, bounds: Bounds): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const { ok, status, statusText, headers } = response
    const mediaType = headers.get('content-type')?.split(';')[0]!.trim().toLowerCase()
    const isStream = ok && (init?.method === 'GET' || mediaType === 'text/event-stream')
    const rewritten = isStream ? events(bounds) : body(bounds, ok && mediaType === 'application/json')
    return new Response(response.body.pipeThrough(rewritten), { status, statusText, headers })
  }
}

type Rewriting = TransformStream<Uint8Array, Uint8Array>
type Output = TransformStreamDefaultController<Uint8Array>

const encoder = new TextEncoder()

function body(bounds: Bounds, isMessage: boolean): Rewriting {
  const bytes = new GrowingBuffer(bounds.maxBytes)
  return new TransformStream({
    transform(chunk, output) {
      if (bytes.fill(chunk).length > 0) reject(tooLong(bounds), bounds, output)
    },
    flush(output) {
      const text = new TextDecoder().decode(bytes.bytes)
      const rewritten = isMessage ? bounds.rewrite(text) : text.slice(0, MAX_OTHER_CHARS)
      if (rewritten === undefined) reject('its answer is not a valid message', bounds, output)
      else output.enqueue(encoder.encode(rewritten))
    },
  })
}

function events(bounds: Bounds): Rewriting {
  const lines = new LineReader(bounds.maxBytes)
  let [event, length] = [[] as string[], 0]
  const take = (line: string, output: Output): void => {
    length += line.length + 1
    if (length > bounds.maxBytes) return reject(tooLong(bounds), bounds, output)
    if (line !== '') return void event.push(line)
    output.enqueue(encoder.encode(rewriteEvent(event, bounds)))
    ;[event, length] = [[], 0]
  }
  return new TransformStream({
    transform(chunk, output) {
      const read = lines.read(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
      if (read === undefined) return reject(tooLong(bounds), bounds, output)
      for (const line of read) for (const each of line.split('\r')) take(each, output)
    },
    flush(output) {
      const [last = ''] = lines.read(Buffer.from('\n')) ?? []
      if (last !== '') for (const each of last.split('\r')) take(each, output)
    },
  })
}

const DATA = /^\uFEFF?data(?:: ?|$)/
const OTHER_EVENT = /^event:(?! ?(?:message)?$)/

/** An event with its data on one line. Its other fields stay as they are. */
function rewriteEvent(lines: readonly string[], { rewrite }: Bounds): string {
  const data = lines.filter((line) => DATA.test(line)).map((line) => line.replace(DATA, ''))
  const fields = lines.filter((line) => !DATA.test(line))
  const text = fields.some((line) => OTHER_EVENT.test(line)) ? '' : data.join('\n')
  const rewritten = text === '' ? '' : (rewrite(text) ?? '')
  return [...fields, ...(data.length === 0 ? [] : [`data: ${rewritten}`]), '', ''].join('\n')
}

function tooLong({ maxBytes }: Bounds): string {
  return `it sent an answer of more than ${maxBytes} bytes`
}

function reject(why: string, { rejected }: Bounds, output: Output): void {
  rejected(why)
  output.error(new Error(why))
}
