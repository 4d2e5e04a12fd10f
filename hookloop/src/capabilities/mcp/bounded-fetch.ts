import { FLOODED, MessageRate } from './transport.ts'

type Fetch = typeof globalThis.fetch

type Bounds = {
  /** The limit for each body, or for each event of a stream. */
  readonly maxBytes: number
  /** Learns why an answer is not read. */
  readonly rejected: (why: string) => void
}

/** Only messages of errors are read from other bodies. */
const MAX_ERROR_BYTES = 8_192

type Bounded = TransformStream<Uint8Array, Uint8Array>
type Output = TransformStreamDefaultController<Uint8Array>

/** A fetch whose answers are limited in size, and the events of its streams in number. */
export function boundedFetch(fetch: Fetch, bounds: Bounds): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const { ok, status, statusText, headers } = response
    const isStream = ok && /^\s*text\/event-stream\b/i.test(headers.get('content-type') ?? '')
    const bounded = isStream ? events(bounds) : ok ? body(bounds) : startOfBody()
    return new Response(response.body.pipeThrough(bounded), { status, statusText, headers })
  }
}

function body(bounds: Bounds): Bounded {
  let length = 0
  return new TransformStream({
    transform(chunk, output) {
      length += chunk.length
      if (length > bounds.maxBytes) return reject(tooLong(bounds), bounds, output)
      output.enqueue(chunk)
    },
  })
}

function startOfBody(): Bounded {
  let left = MAX_ERROR_BYTES
  return new TransformStream({
    transform(chunk, output) {
      output.enqueue(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) output.terminate()
    },
  })
}

const [LINE_FEED, CARRIAGE_RETURN] = [10, 13]

/** An empty line ends an event. */
function events(bounds: Bounds): Bounded {
  const rate = new MessageRate()
  let [length, isLineStart] = [0, true]
  return new TransformStream({
    transform(chunk, output) {
      for (const byte of chunk) {
        if (byte === CARRIAGE_RETURN) continue
        const isEnd = isLineStart && byte === LINE_FEED
        isLineStart = byte === LINE_FEED
        length = isEnd ? 0 : length + 1
        if (length > bounds.maxBytes) return reject(tooLong(bounds), bounds, output)
        if (isEnd && rate.isExceeded()) return reject(FLOODED, bounds, output)
      }
      output.enqueue(chunk)
    },
  })
}

function tooLong({ maxBytes }: Bounds): string {
  return `it sent an answer of more than ${maxBytes} bytes`
}

function reject(why: string, { rejected }: Bounds, output: Output): void {
  rejected(why)
  output.error(new Error(why))
}
