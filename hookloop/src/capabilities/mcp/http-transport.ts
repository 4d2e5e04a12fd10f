import type { JSONRPCMessage, StreamableHTTPClientTransport, TransportSendOptions } from '@modelcontextprotocol/client'
import { waitAtMost } from '../../system/timeout.ts'
import { boundedFetch } from './bounded-fetch.ts'
import type { Sdk } from './load-sdk.ts'
import type { HttpServer } from './settings.ts'
import { MISSING_RESPONSE, type McpTransport } from './transport.ts'

/** How long ending the session may take. */
const END_SESSION_MS = 1_000
/** The shortest delay before a reconnect that a server may ask for. */
const MIN_RETRY_MS = 1_000

/** The same as `TransportSendOptions`, but without `undefined` for omitted options. */
type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/**
 * Streamable HTTP: the transport of the SDK, with answers of limited size. A request whose stream breaks off gets an error
 * response, and a cancelled one is closed: the SDK would wait.
 */
export function httpTransport(
  sdk: Sdk,
  { url, headers, fetch = globalThis.fetch }: HttpServer & { readonly url: URL },
  { maxMessageBytes }: { readonly maxMessageBytes: number },
): McpTransport {
  let why = 'the connection was closed before the response arrived'
  const inner = new sdk.StreamableHTTPClientTransport(url, {
    fetch: boundedFetch(fetch, { maxBytes: maxMessageBytes, rejected: (reason) => (why = reason) }),
    ...(headers && { requestInit: { headers: { ...headers } } }),
    reconnectionScheduler: (reconnect, delay) => {
      const timer = setTimeout(reconnect, Math.max(delay, MIN_RETRY_MS)).unref()
      return () => clearTimeout(timer)
    },
  })
  const cancels = new Map<unknown, AbortController>()
  const [send, close] = [inner.send.bind(inner), inner.close.bind(inner)]

  async function sendRequest(message: JSONRPCMessage & { id: string | number }, options: SendOptions): Promise<void> {
    const { id } = message
    const cancel = new AbortController()
    cancels.set(id, cancel)
    const { requestSignal } = options
    await send(message, {
      ...options,
      requestSignal: requestSignal ? AbortSignal.any([requestSignal, cancel.signal]) : cancel.signal,
      onRequestStreamEnd: () => {
        cancels.delete(id)
        options.onRequestStreamEnd?.()
        // Without effect if the response has arrived.
        inner.onmessage?.({ jsonrpc: '2.0', id, error: { code: MISSING_RESPONSE, message: why } })
      },
    })
  }

  return Object.assign(inner, {
    ended: undefined,
    stderrText: '',
    async send(message: JSONRPCMessage, given: TransportSendOptions = {}) {
      const options = given as SendOptions
      if ('method' in message && 'id' in message) return sendRequest(message, options)
      await send(message, options)
      if (!('method' in message) || message.method !== 'notifications/cancelled') return
      const id = message.params?.['requestId']
      cancels.get(id)?.abort()
      cancels.delete(id)
    },
    async close() {
      await waitAtMost(inner.terminateSession(), END_SESSION_MS).catch(() => undefined)
      await close()
    },
  })
}
