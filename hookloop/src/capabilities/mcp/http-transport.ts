import { setTimeout as sleep } from 'node:timers/promises'
import type { JSONRPCMessage, StreamableHTTPClientTransport, TransportSendOptions } from '@modelcontextprotocol/client'
import { waitAtMost } from '../../system/timeout.ts'
import type { Sdk } from './load-sdk.ts'
import type { HttpServer } from './settings.ts'
import { boundMessage, FLOODED, MessageBudget, missingResponse, type McpTransport } from './transport.ts'

/** How long ending the session may take. */
const END_SESSION_MS = 1_000
/** How long a stream may stay open after the response to its request. */
const LINGER_MS = 1_000
/** The shortest delay before a reconnect that a server may ask for. */
const MIN_RETRY_MS = 1_000

/** The same as `TransportSendOptions`, but without `undefined` for omitted options. */
type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/**
 * Streamable HTTP: the SDK's transport, which by itself would wait without a limit. A request whose stream breaks off gets an
 * error response, a cancelled one is closed, and the size of answers is limited.
 */
export class HttpTransport implements McpTransport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: (<T extends JSONRPCMessage>(message: T) => void) | undefined
  ended: string | undefined
  readonly stderrText = ''
  readonly hasPerRequestStream = true

  readonly #inner: StreamableHTTPClientTransport
  readonly #budget = new MessageBudget()
  readonly #open = new Map<string | number, AbortController>()
  #oversized: string | undefined
  #closing: Promise<void> | undefined

  constructor(
    sdk: Sdk,
    { url, headers, fetch = globalThis.fetch }: HttpServer & { readonly url: URL },
    { maxMessageBytes }: { readonly maxMessageBytes: number },
  ) {
    const bounded = boundedFetch(fetch, maxMessageBytes, (why) => (this.#oversized = why))
    this.#inner = new sdk.StreamableHTTPClientTransport(url, {
      fetch: bounded,
      ...(headers && { requestInit: { headers: { ...headers } } }),
      reconnectionScheduler: (reconnect, delay) => {
        const timer = setTimeout(reconnect, Math.max(delay, MIN_RETRY_MS)).unref()
        return () => clearTimeout(timer)
      },
    })
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version)
  }

  start(): Promise<void> {
    Object.assign(this.#inner, {
      onerror: (error) => this.onerror?.(error),
      onclose: () => this.onclose?.(),
      onmessage: (message) => this.#receive(message),
    } satisfies Pick<StreamableHTTPClientTransport, 'onerror' | 'onclose' | 'onmessage'>)
    return this.#inner.start()
  }

  async send(message: JSONRPCMessage, given: TransportSendOptions = {}): Promise<void> {
    const options = given as SendOptions
    this.#budget.sent(message)
    if (!('method' in message)) return this.#inner.send(message, options)
    if (!('id' in message)) {
      await this.#inner.send(message, options)
      if (message.method === 'notifications/cancelled') this.#cancel(message.params?.['requestId'])
      return
    }
    const { id } = message
    const controller = new AbortController()
    this.#open.set(id, controller)
    const signals = [controller.signal, ...(options.requestSignal ? [options.requestSignal] : [])]
    try {
      await this.#inner.send(message, {
        ...options,
        requestSignal: AbortSignal.any(signals),
        onRequestStreamEnd: () => this.#streamEnded(id, given),
      })
    } catch (thrown) {
      this.#open.delete(id)
      const oversized = this.#takeOversized()
      throw oversized === undefined ? thrown : new Error(oversized, { cause: thrown })
    }
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#endSession())
  }

  async #endSession(): Promise<void> {
    await waitAtMost(this.#inner.terminateSession(), END_SESSION_MS).catch(() => undefined)
    await this.#inner.close()
  }

  #receive(message: JSONRPCMessage): void {
    if (!this.#budget.received(message)) return this.#abort(FLOODED)
    const isResponse = !('method' in message)
    if (isResponse && message.id !== undefined) void this.#closeStreamLater(message.id)
    this.onmessage?.(boundMessage(message))
  }

  /** The stream of an answered request should end by itself; otherwise it would be read forever. */
  async #closeStreamLater(id: string | number): Promise<void> {
    const controller = this.#open.get(id)
    this.#open.delete(id)
    await sleep(LINGER_MS, undefined, { ref: false })
    controller?.abort()
  }

  #streamEnded(id: string | number, options: TransportSendOptions): void {
    if (!this.#open.delete(id)) return
    options.onRequestStreamEnd?.()
    this.onmessage?.(
      missingResponse(id, this.#takeOversized() ?? 'the connection was closed before the response arrived'),
    )
  }

  #takeOversized(): string | undefined {
    const why = this.#oversized
    this.#oversized = undefined
    return why
  }

  #cancel(id: unknown): void {
    if (typeof id !== 'string' && typeof id !== 'number') return
    this.#open.get(id)?.abort()
    this.#open.delete(id)
  }

  #abort(why: string): void {
    this.ended ??= why
    void this.#inner.close() // without ending the session: no more messages of the server are read
  }
}

type Fetch = typeof globalThis.fetch
const NEW_LINE = 10
const RETURN = 13

/** A fetch with a size limit for each body, or for each event of a stream. */
function boundedFetch(fetch: Fetch, maxBytes: number, tooLarge: (why: string) => void): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
    const { status, statusText, headers } = response
    const fits = isStream ? eventLimit(maxBytes) : bodyLimit(maxBytes)
    const limit = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (fits(chunk)) return controller.enqueue(chunk)
        const why = `it sent an answer of more than ${maxBytes} bytes`
        tooLarge(why)
        controller.error(new Error(why))
      },
    })
    return new Response(response.body.pipeThrough(limit), { status, statusText, headers })
  }
}

function bodyLimit(maxBytes: number): (chunk: Uint8Array) => boolean {
  let bytes = 0
  return (chunk) => (bytes += chunk.length) <= maxBytes
}

/** An event ends with an empty line. The limit applies to each event. */
function eventLimit(maxBytes: number): (chunk: Uint8Array) => boolean {
  let [bytes, isLineStart] = [0, false]
  return (chunk) => {
    for (const byte of chunk) {
      if (byte === RETURN) continue
      if (byte === NEW_LINE && isLineStart) bytes = 0
      isLineStart = byte === NEW_LINE
      if (++bytes > maxBytes) return false
    }
    return true
  }
}
