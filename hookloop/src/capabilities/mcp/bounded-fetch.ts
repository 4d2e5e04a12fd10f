import type { Transformer, TransformStreamDefaultController } from 'node:stream/web'

type Fetch = typeof globalThis.fetch
const NEW_LINE = 10
const RETURN = 13

/** A fetch whose answers end where they become too large: a body, or one event of a stream. */
export function boundedFetch(fetch: Fetch, maxBytes: number, tooLarge: (why: string) => void): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
    const { status, statusText, headers } = response
    const body = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>(new Limit(maxBytes, isStream, tooLarge)),
    )
    return new Response(body, { status, statusText, headers })
  }
}

class Limit implements Transformer<Uint8Array, Uint8Array> {
  readonly #maxBytes: number
  readonly #isStream: boolean
  readonly #tooLarge: (why: string) => void
  #bytes = 0
  #atLineStart = false

  constructor(maxBytes: number, isStream: boolean, tooLarge: (why: string) => void) {
    this.#maxBytes = maxBytes
    this.#isStream = isStream
    this.#tooLarge = tooLarge
  }

  transform(chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void {
    if (this.#fits(chunk)) return controller.enqueue(chunk)
    const why = `it sent an answer of more than ${this.#maxBytes} bytes`
    this.#tooLarge(why)
    controller.error(new Error(why))
  }

  /** An event ends with an empty line, and the next one may be as large again. */
  #fits(chunk: Uint8Array): boolean {
    if (!this.#isStream) {
      this.#bytes += chunk.length
      return this.#bytes <= this.#maxBytes
    }
    for (const byte of chunk) {
      if (byte === RETURN) continue
      if (byte === NEW_LINE && this.#atLineStart) this.#bytes = 0
      this.#atLineStart = byte === NEW_LINE
      if (++this.#bytes > this.#maxBytes) return false
    }
    return true
  }
}
