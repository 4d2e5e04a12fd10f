import { createHash, timingSafeEqual } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import { AgentError, messageOf, type ErrorCode } from '../errors.ts'
import { HttpError } from '../serve/http.ts'

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

/**
 * Throws unless a request comes from the page of this server, or from a program: not from another site, and not under another
 * name. `hosts`: every `Host` that a browser sends to it. A page of another name that resolves to it has another one.
 */
export function checkOrigin(request: Request, hosts: ReadonlySet<string>): void {
  const { url, headers } = request
  const host = headers.get('host') ?? ''
  if (!hosts.has(host) || new URL(url).host !== host)
    throw new HttpProblem(421, 'HOST_UNKNOWN', 'This server does not serve this host.')
  if (headers.has('upgrade')) throw new HttpProblem(400, 'UPGRADE_REJECTED', 'This server accepts no upgrade.')
  const site = headers.get('sec-fetch-site') ?? 'none'
  const isOwn = site === 'same-origin' || site === 'none' || isVisit(request)
  if (!isOwn || (headers.get('origin') ?? `http://${host}`) !== `http://${host}`)
    throw new HttpProblem(403, 'ORIGIN_REJECTED', 'This server accepts no request from another site.')
}

/** A link to the page, which contains nothing of the user. Frames and scripts of other sites are not meant. */
function isVisit({ method, url, headers }: Request): boolean {
  return (
    method === 'GET' &&
    new URL(url).pathname === '/' &&
    headers.get('sec-fetch-mode') === 'navigate' &&
    headers.get('sec-fetch-dest') === 'document'
  )
}

/** Throws unless a request has the token, which only the URL that the command prints contains. */
export function checkToken({ headers }: Request, token: string): void {
  const given = headers.get('authorization') ?? ''
  const [a, b] = [given, `Bearer ${token}`].map((text) => createHash('sha256').update(text).digest())
  if (timingSafeEqual(a!, b!)) return
  throw new HttpProblem(401, 'TOKEN_MISSING', 'Open the URL that "hookloop studio" prints: it contains the token.')
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
  if (thrown instanceof HttpError) return new HttpProblem(thrown.status, 'REQUEST_INVALID', thrown.message)
  if (!(thrown instanceof AgentError)) return new HttpProblem(500, 'STUDIO_FAILED', messageOf(thrown))
  return new HttpProblem(statuses[thrown.code] ?? 500, thrown.code, thrown.message)
}
