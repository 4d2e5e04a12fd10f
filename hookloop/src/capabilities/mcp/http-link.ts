import { setTimeout as sleep } from 'node:timers/promises'
import type { JSONRPCMessage, StreamableHTTPClientTransport, TransportSendOptions } from '@modelcontextprotocol/client'
import { waitAtMost } from '../../system/timeout.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { unanswered, type Link } from './link.ts'
import type { Sdk } from './load-sdk.ts'
import { floodWords, MessageBudget } from './message-budget.ts'
import type { HttpServer } from './settings.ts'

/** How long the server has to be told that a session is over. */
const FAREWELL_MS = 1_000
/** How long a stream may stay open once it has brought what it was opened for. */
const LINGER_MS = 1_000
/** A server may say how soon it is called again; not sooner than this. */
const MIN_RETRY_MS = 1_000

/** The same to both, but one of them says that what is left out may not be `undefined`. */
type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/**
 * A server over streamable HTTP: the SDK's transport, with an end to what it would wait for without one. A request whose
 * stream breaks off is answered with a failure, one that was cancelled is not left open, and no answer is too large.
 */
export class HttpLink implements Link {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: (<T extends JSONRPCMessage>(message: T) => void) | undefined
  ended: string | undefined
  readonly complaints = ''
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
      if (message.method === 'notifications/cancelled') this.#letGo(message.params?.['requestId'])
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
    return (this.#closing ??= this.#leave())
  }

  async #leave(): Promise<void> {
    await waitAtMost(this.#inner.terminateSession(), FAREWELL_MS).catch(() => undefined)
    await this.#inner.close()
  }

  #receive(message: JSONRPCMessage): void {
    if (!this.#budget.received(message)) return this.#breakOff(floodWords)
    const isAnswer = !('method' in message)
    if (isAnswer && message.id !== undefined) void this.#lingering(message.id)
    this.onmessage?.(message)
  }

  /** The stream of an answered request ends by itself; one that does not would be read forever. */
  async #lingering(id: string | number): Promise<void> {
    const controller = this.#open.get(id)
    this.#open.delete(id)
    await sleep(LINGER_MS, undefined, { ref: false })
    controller?.abort()
  }

  #streamEnded(id: string | number, options: TransportSendOptions): void {
    if (!this.#open.delete(id)) return
    options.onRequestStreamEnd?.()
    this.onmessage?.(unanswered(id, this.#takeOversized() ?? 'the connection broke off before the answer came'))
  }

  #takeOversized(): string | undefined {
    const why = this.#oversized
    this.#oversized = undefined
    return why
  }

  #letGo(id: unknown): void {
    if (typeof id !== 'string' && typeof id !== 'number') return
    this.#open.get(id)?.abort()
    this.#open.delete(id)
  }

  #breakOff(why: string): void {
    this.ended ??= why
    void this.#inner.close() // no farewell: nothing it still says is of interest
  }
}
