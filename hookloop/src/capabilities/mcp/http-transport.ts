import { setTimeout as sleep } from 'node:timers/promises'
import type { JSONRPCMessage, StreamableHTTPClientTransport, TransportSendOptions } from '@modelcontextprotocol/client'
import { waitAtMost } from '../../system/timeout.ts'
import type { Sdk } from './load-sdk.ts'
import type { HttpServer } from './settings.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { missingResponse, readMessages } from './read-message.ts'
import { FLOODED, MessageBudget, type McpTransport } from './transport.ts'

/** How long ending the session may take. */
const END_SESSION_MS = 1_000
/** How long a stream may stay open after the response to its request. */
const LINGER_MS = 1_000
/** The shortest delay before a reconnect that a server may ask for. */
const MIN_RETRY_MS = 1_000

/** The same as `TransportSendOptions`, but without `undefined` for omitted options. */
type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

type OpenRequest = { readonly controller: AbortController; response?: JSONRPCMessage }

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
  readonly #open = new Map<string, OpenRequest>()
  readonly #sdk: Sdk
  #rejected: string | undefined
  #closing: Promise<void> | undefined

  constructor(
    sdk: Sdk,
    { url, headers, fetch = globalThis.fetch }: HttpServer & { readonly url: URL },
    { maxMessageBytes }: { readonly maxMessageBytes: number },
  ) {
    this.#sdk = sdk
    this.#inner = new sdk.StreamableHTTPClientTransport(url, {
      fetch: boundedFetch(fetch, {
        maxBytes: maxMessageBytes,
        rewrite: (text) => this.#rewrite(text),
        rejected: (why) => (this.#rejected = why),
      }),
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
    this.#open.set(String(id), { controller })
    const signals = [controller.signal, ...(options.requestSignal ? [options.requestSignal] : [])]
    try {
      await this.#inner.send(message, {
        ...options,
        requestSignal: AbortSignal.any(signals),
        onRequestStreamEnd: () => this.#streamEnded(id, given),
      })
    } catch (thrown) {
      this.#open.delete(String(id))
      const rejected = this.#takeRejected()
      throw rejected === undefined ? thrown : new Error(rejected, { cause: thrown })
    }
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#endSession())
  }

  async #endSession(): Promise<void> {
    await waitAtMost(this.#inner.terminateSession(), END_SESSION_MS).catch(() => undefined)
    await this.#inner.close()
  }

  /** What the SDK parses and validates: bounded messages. The complete ones replace them when they arrive. */
  #rewrite(text: string): string | undefined {
    const messages = readMessages(this.#sdk, text)
    for (const message of messages) {
      if ('method' in message) continue
      const open = this.#open.get(String(message.id))
      if (open !== undefined) open.response = message
    }
    if (messages.length === 0 && !this.#budget.received()) this.#abort(FLOODED)
    const texts = messages.map((message) => JSON.stringify(message))
    return texts.length > 1 ? `[${texts.join()}]` : texts[0]
  }

  #receive(message: JSONRPCMessage): void {
    if (!this.#budget.received(message)) return this.#abort(FLOODED)
    if ('method' in message) return this.onmessage?.(message)
    const key = String(message.id)
    const { response = message, controller } = this.#open.get(key) ?? {}
    this.#open.delete(key)
    if (controller !== undefined) void abortLater(controller)
    this.onmessage?.(response)
  }

  #streamEnded(id: string | number, options: TransportSendOptions): void {
    if (!this.#open.delete(String(id))) return
    options.onRequestStreamEnd?.()
    this.onmessage?.(
      missingResponse(id, this.#takeRejected() ?? 'the connection was closed before the response arrived'),
    )
  }

  #takeRejected(): string | undefined {
    const why = this.#rejected
    this.#rejected = undefined
    return why
  }

  #cancel(id: unknown): void {
    this.#open.get(String(id))?.controller.abort()
    this.#open.delete(String(id))
  }

  #abort(why: string): void {
    this.ended ??= why
    void this.#inner.close() // without ending the session: no more messages of the server are read
  }
}

/** The stream of an answered request should end by itself; otherwise it would be read forever. */
async function abortLater(controller: AbortController): Promise<void> {
  await sleep(LINGER_MS, undefined, { ref: false })
  controller.abort()
}
