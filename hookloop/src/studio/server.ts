import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AgentError, messageOf } from '../errors.ts'
import type { JsonObject } from '../values/json.ts'
import type { PageBundle } from './api.types.ts'
import { pageHtml, pagePolicy } from './page-html.ts'
import {
  checkOrigin,
  checkToken,
  hostsOf,
  HttpProblem,
  readBody,
  toProblem,
  type RequestRules,
} from './request-rules.ts'

/** The calls and the streams that a server offers, by name. */
type Endpoints = {
  readonly call: (name: string, request: JsonObject) => Promise<unknown>
  readonly stream: (name: string, request: JsonObject, signal: AbortSignal) => AsyncIterator<unknown>
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
const HEARTBEAT_MS = 15_000

/** Serves the page and its API. It answers only requests of its own page and of programs that have the token. */
export async function serveStudio(endpoints: Endpoints, options: ServerOptions): Promise<StudioServer> {
  const { page, port = 0, host = '127.0.0.1', token = randomBytes(32).toString('base64url') } = options
  const closing = new AbortController()
  let streams = 0
  const allowed: { rules?: RequestRules } = {}

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const rules = allowed.rules!
    checkOrigin(request, rules)
    const path = request.url ?? ''
    const [, kind, name] = /^\/(api|stream)\/([A-Za-z]+)$/.exec(path) ?? []
    if (name === undefined) {
      allowOnly(request, ['GET', 'HEAD'])
      return sendFile(response, path, await page())
    }
    allowOnly(request, ['POST'])
    checkToken(request, rules)
    const body = await readBody(request)
    if (kind === 'api') return sendJson(response, 200, await endpoints.call(name, body))
    if (streams >= MAX_STREAMS) throw new HttpProblem(503, 'TOO_MANY_STREAMS', 'Close some windows of the studio.')
    streams++
    try {
      const reading = new AbortController()
      response.once('close', () => reading.abort())
      const signal = AbortSignal.any([closing.signal, reading.signal])
      await sendLines(response, endpoints.stream(name, body, signal), signal)
    } finally {
      streams--
    }
  }

  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(commonHeaders)) response.setHeader(name, value)
    handle(request, response).catch((thrown: unknown) => {
      const { status, code, message } = toProblem(thrown)
      if (response.headersSent) response.destroy()
      else {
        response.setHeader('connection', 'close') // the rest of its body is not read
        sendJson(response, status, { error: { code, message } })
      }
    })
  })
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
  allowed.rules = { hosts: hostsOf(host, address.port), token }
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

const commonHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': pagePolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

function allowOnly({ method = '' }: IncomingMessage, methods: readonly string[]): void {
  if (!methods.includes(method)) throw new HttpProblem(405, 'METHOD', `Only ${methods.join(' and ')} is allowed here.`)
}

function sendFile(response: ServerResponse, path: string, { script, style }: PageBundle): void {
  const files: { readonly [path: string]: readonly [type: string, text: string] } = {
    '/': ['text/html', pageHtml],
    '/page.js': ['text/javascript', script],
    '/page.css': ['text/css', style],
  }
  if (!Object.hasOwn(files, path)) throw new HttpProblem(404, 'NOT_FOUND', 'There is no such page.')
  const [type, text] = files[path]!
  send(response, 200, `${type}; charset=utf-8`, text)
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, 'application/json; charset=utf-8', JSON.stringify(value))
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text)
}

/** Sends what an iterator yields, one line each, as fast as the reader takes it. A call that fails at once is an error. */
async function sendLines(response: ServerResponse, lines: AsyncIterator<unknown>, signal: AbortSignal): Promise<void> {
  let next = await lines.next()
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
  const heartbeat = setInterval(() => response.writableNeedDrain || response.write('\n'), HEARTBEAT_MS)
  try {
    for (; next.done !== true && !signal.aborted; next = await lines.next()) {
      if (!response.write(`${JSON.stringify(next.value)}\n`)) await once(response, 'drain', { signal })
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown
  } finally {
    clearInterval(heartbeat)
    await lines.return?.()
    response.end()
  }
}
