import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * A listener for `node:http` from a function of web standards. A response is written as fast as the client reads it. When the
 * client leaves, the signal of the request aborts and the body of the response is cancelled.
 *
 * @example
 * createServer(toNodeListener(handle)).listen(3000)
 */
export function toNodeListener(
  handle: (request: Request) => Response | Promise<Response>,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  return (incoming, outgoing) => {
    respond(handle, incoming, outgoing).catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(500).end('The server has failed.')
    })
  }
}

async function respond(
  handle: (request: Request) => Response | Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const leaving = new AbortController()
  outgoing.once('close', () => leaving.abort())
  const request = toRequest(incoming, leaving.signal)
  if (request === undefined) {
    outgoing.writeHead(400).end('The address of the request is not valid.')
    return
  }
  const response = await handle(request)
  if (leaving.signal.aborted) return response.body?.cancel()
  const headers: { [name: string]: string | readonly string[] } = Object.fromEntries(response.headers)
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) headers['set-cookie'] = cookies
  if (!incoming.complete) headers['connection'] = 'close' // a body that was not read, such as one that is too large
  outgoing.writeHead(response.status, headers as { readonly [name: string]: string })
  if (response.body === null) {
    outgoing.end()
    return
  }
  outgoing.flushHeaders() // the first event of a stream may come late
  const reader = response.body.getReader()
  leaving.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true })
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (!outgoing.write(value)) await once(outgoing, 'drain', leaving).catch(() => undefined) // rejects when the client leaves
  }
  outgoing.end()
}

/** Undefined if the address is not one. The name of the host is only used to complete it. */
function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = 'GET', url = '/', headers } = incoming
  const address = url.startsWith('/') ? `http://${headers.host ?? 'localhost'}${url}` : url
  if (!URL.canParse(address)) return undefined
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody ? { body: bodyOf(incoming), duplex: 'half' as const } : {}
  try {
    return new Request(address, { method, headers: toHeaders(incoming), signal, ...body })
  } catch {
    return undefined // a method such as CONNECT
  }
}

/** Unlike `Readable.toWeb`, it does not close the connection when it is cancelled: the client still gets the response. */
function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      start(controller) {
        incoming.on('data', (chunk: Uint8Array) => {
          controller.enqueue(chunk)
          incoming.pause()
        })
        incoming.once('end', () => controller.close()).once('error', (error) => controller.error(error))
        incoming.pause()
      },
      pull: () => void incoming.resume(),
      cancel: () => void incoming.removeAllListeners().resume(),
    },
    { highWaterMark: 0 },
  )
}

function toHeaders({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value)
  return headers
}
