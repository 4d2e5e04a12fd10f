import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AgentError, messageOf } from '../errors.ts'
import { readJson } from '../serve/http.ts'
import { toNodeListener } from '../serve/node-listener.ts'
import { sseResponse, type SseEvent } from '../serve/sse.ts'
import type { JsonObject } from '../values/json.ts'
import type { PageBundle } from './api.types.ts'
import { pageHtml, pagePolicy } from './page-html.ts'
import { checkOrigin, checkToken, hostsOf, HttpProblem, toProblem } from './request-rules.ts'

/** The calls and the streams that a server offers, by name. */
type Endpoints = {
  readonly call: (name: string, request: JsonObject) => Promise<unknown>
  readonly stream: (name: string, request: JsonObject, signal: AbortSignal) => AsyncIterable<unknown>
}

export type ServerOptions = {
  readonly page: () => Promise<PageBundle>
  /** Default: a free port. */
  readonly port?: number | undefined
  /** The address to listen at. Default: 127.0.0.1, which only this machine reaches. */
  readonly host?: string | undefined
  /** Default: random. */
  readonly token?: string | undefined
}

export type StudioServer = {
  /** With the token, for the browser of the user. */
  readonly url: string
  readonly close: () => Promise<void>
}

const MAX_STREAMS = 100
const MAX_BODY_BYTES = 1024 * 1024
const KEEP_ALIVE_MS = 15_000

const commonHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': pagePolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Serves the page and its API. It answers only requests of its own page and of programs that have the token. */
export async function serveStudio(endpoints: Endpoints, options: ServerOptions): Promise<StudioServer> {
  const { page, port = 0, host = '127.0.0.1', token = randomBytes(32).toString('base64url') } = options
  const closing = new AbortController()
  let hosts: ReadonlySet<string> = new Set()
  let streams = 0

  const answer = async (request: Request): Promise<Response> => {
    checkOrigin(request, hosts)
    const { pathname } = new URL(request.url)
    const [, kind, name] = /^\/(api|stream)\/([A-Za-z]+)$/.exec(pathname) ?? []
    if (name === undefined) {
      allowOnly(request, ['GET', 'HEAD'])
      return fileResponse(pathname, await page())
    }
    allowOnly(request, ['POST'])
    checkToken(request, token)
    const body = await readJson(request, MAX_BODY_BYTES)
    return kind === 'api' ? Response.json(await endpoints.call(name, body)) : streamResponse(request, name, body)
  }

  async function* read(name: string, body: JsonObject, reading: AbortController): AsyncGenerator<SseEvent> {
    streams++
    try {
      const signal = AbortSignal.any([closing.signal, reading.signal])
      for await (const data of endpoints.stream(name, body, signal)) yield { data }
    } finally {
      reading.abort()
      streams--
    }
  }

  /** A stream that fails at once is an error. */
  const streamResponse = async (request: Request, name: string, body: JsonObject): Promise<Response> => {
    if (streams >= MAX_STREAMS) throw new HttpProblem(503, 'TOO_MANY_STREAMS', 'Close some windows of the studio.')
    const reading = new AbortController()
    const lines = read(name, body, reading)
    const first = [await lines.next()]
    const events = (signal: AbortSignal): AsyncIterator<SseEvent> => {
      signal.addEventListener('abort', () => reading.abort())
      return { next: async () => first.pop() ?? lines.next(), return: () => lines.return(undefined) }
    }
    return sseResponse(request, events, { keepAliveMs: KEEP_ALIVE_MS, idleMs: Infinity })
  }

  const handle = async (request: Request): Promise<Response> => {
    const { body, status, headers } = await answer(request).catch((thrown: unknown) => {
      const { status: failed, code, message } = toProblem(thrown)
      return Response.json({ error: { code, message } }, { status: failed })
    })
    return new Response(body, { status, headers: { ...Object.fromEntries(headers), ...commonHeaders } })
  }

  const server = createServer(toNodeListener(handle))
  server.maxConnections = 4 * MAX_STREAMS
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (thrown) {
    throw new AgentError('AGENT_INVALID_OPTION', `Cannot listen at ${host}:${port}: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  }
  const address = server.address() as AddressInfo
  hosts = hostsOf(host, address.port)
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${shown}:${address.port}/#token=${token}`,
    close: async () => {
      closing.abort()
      server.close()
      server.closeAllConnections()
      if (server.listening) await once(server, 'close')
    },
  }
}

function allowOnly({ method }: Request, methods: readonly string[]): void {
  if (!methods.includes(method)) throw new HttpProblem(405, 'METHOD', `Only ${methods.join(' and ')} is allowed here.`)
}

function fileResponse(path: string, { script, style }: PageBundle): Response {
  const files: { readonly [path: string]: readonly [type: string, text: string] } = {
    '/': ['text/html', pageHtml],
    '/page.js': ['text/javascript', script],
    '/page.css': ['text/css', style],
  }
  if (!Object.hasOwn(files, path)) throw new HttpProblem(404, 'NOT_FOUND', 'There is no such page.')
  const [type, text] = files[path]!
  return new Response(text, { headers: { 'content-type': `${type}; charset=utf-8` } })
}
