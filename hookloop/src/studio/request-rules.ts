import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { networkInterfaces } from 'node:os'
import { AgentError, messageOf, type ErrorCode } from '../errors.ts'
import { isJsonObject, storedJson, type JsonObject } from '../values/json.ts'

/** A request that is answered with an error. */
export class HttpProblem extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export type RequestRules = {
  /** Every `Host` that a browser sends to this server. A page of another name that resolves to it has another one. */
  readonly hosts: ReadonlySet<string>
  readonly token: string
}

/**
 * Throws unless a request comes from the page of this server, or from a program: not from another site, and not under another
 * name.
 */
export function checkOrigin(request: IncomingMessage, { hosts }: RequestRules): void {
  const { headers } = request
  const { host = '', origin, upgrade, 'sec-fetch-site': site = 'none' } = headers
  if (!hosts.has(host)) throw new HttpProblem(421, 'HOST_UNKNOWN', 'This server does not serve this host.')
  if (upgrade !== undefined) throw new HttpProblem(400, 'UPGRADE_REJECTED', 'This server accepts no upgrade.')
  const isOwn = site === 'same-origin' || site === 'none' || isVisit(request)
  if (!isOwn || (origin !== undefined && origin !== `http://${host}`)) {
    throw new HttpProblem(403, 'ORIGIN_REJECTED', 'This server accepts no request from another site.')
  }
}

/** A link to the page, which contains nothing of the user. Frames and scripts of other sites are not meant. */
function isVisit({ method, url, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    url === '/' &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document'
  )
}

/** Throws unless a request has the token, which only the URL that the command prints contains. */
export function checkToken({ headers: { authorization = '' } }: IncomingMessage, { token }: RequestRules): void {
  const [given, expected] = [authorization, `Bearer ${token}`].map((text) => createHash('sha256').update(text).digest())
  if (timingSafeEqual(given!, expected!)) return
  throw new HttpProblem(401, 'TOKEN_MISSING', 'Open the URL that "hookloop studio" prints: it contains the token.')
}

const MAX_BODY_BYTES = 1024 * 1024

/** The JSON object in the body of a request. A form of another site cannot send this content type. */
export async function readBody(request: IncomingMessage): Promise<JsonObject> {
  const { 'content-type': type = '', 'content-length': length = '0' } = request.headers
  if (!/^application\/json(\s*;\s*charset=utf-8)?$/i.test(type))
    throw new HttpProblem(415, 'CONTENT_TYPE', 'The body must be application/json.')
  const tooLarge = new HttpProblem(413, 'BODY_TOO_LARGE', `The body has more than ${MAX_BODY_BYTES} bytes.`)
  if (Number(length) > MAX_BODY_BYTES) throw tooLarge
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > MAX_BODY_BYTES) throw tooLarge
    pieces.push(piece)
  }
  try {
    const body = storedJson(JSON.parse(Buffer.concat(pieces).toString('utf8')), 'body')
    if (isJsonObject(body)) return body
  } catch {
    // reported below
  }
  throw new HttpProblem(400, 'BODY_INVALID', 'The body must be a JSON object.')
}

/** The values of `Host` for a server at this address. Numeric addresses only: a name could be made to resolve to it. */
export function hostsOf(address: string, port: number): ReadonlySet<string> {
  const isWildcard = address === '0.0.0.0' || address === '::'
  const others = isWildcard ? Object.values(networkInterfaces()).flatMap((all) => all!.map((each) => each.address)) : []
  const names = ['127.0.0.1', 'localhost', address, ...others].map((each) => (each.includes(':') ? `[${each}]` : each))
  return new Set(names.map((name) => `${name}:${port}`))
}

const statuses: { readonly [code in ErrorCode]?: number } = {
  SESSION_UNKNOWN: 404,
  SESSION_BUSY: 423,
  SESSION_FENCED: 423,
  ANSWER_USED: 409,
  ANSWER_UNKNOWN: 409,
  ANSWER_EXPIRED: 409,
  APPROVAL_MISMATCH: 409,
  ANSWER_INVALID: 400,
  AGENT_INVALID_OPTION: 400,
  SESSION_ID_INVALID: 400,
}

/** What to answer to a request that failed. */
export function toProblem(thrown: unknown): HttpProblem {
  if (thrown instanceof HttpProblem) return thrown
  if (!(thrown instanceof AgentError)) return new HttpProblem(500, 'STUDIO_FAILED', messageOf(thrown))
  return new HttpProblem(statuses[thrown.code] ?? 500, thrown.code, thrown.message)
}
