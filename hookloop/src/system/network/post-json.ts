import type { IncomingMessage, RequestOptions } from 'node:http'
import { isIP } from 'node:net'
import { CappedOutput } from '../processes/capped-output.ts'
import { privateAddressError, isPrivateAddress, lookupPublic, type Resolve } from './private-address.ts'
import { Deadline } from '../timeout.ts'

export type PostOptions = {
  readonly headers?: { readonly [name: string]: string }
  /** For all of it: DNS lookup, connecting, and reading the complete answer. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Maximum size of the answer; a longer one is an error. */
  readonly maxBytes: number
  readonly allowPrivate: boolean
  /** DNS lookup where private addresses are not allowed. */
  readonly resolve?: Resolve
}

export type Posted = { readonly status: number; readonly text: string }

export class PostTimeout extends Error {}

/** Posts JSON once, without redirects, cookies or retries. Rejects with an error message for the user. */
export async function postJson(url: string, body: string, options: PostOptions): Promise<Posted> {
  const { timeoutMs, signal, allowPrivate } = options
  const address = new URL(url)
  const host = address.hostname.replace(/^\[|\]$/g, '')
  if (address.protocol !== 'http:' && address.protocol !== 'https:') {
    throw new Error(`${address.protocol} is not supported; use http: or https:`)
  }
  if (!allowPrivate && isIP(host) !== 0 && isPrivateAddress(host)) throw privateAddressError(host, host)
  const deadline = new Deadline(signal)
  deadline.start(timeoutMs, () => new PostTimeout(`no answer within ${timeoutMs} ms`))
  try {
    return await send(address, body, { ...options, signal: deadline.signal })
  } catch (error) {
    if (signal?.aborted === true) throw new Error('it was cancelled', { cause: error })
    throw deadline.expired ?? error
  } finally {
    deadline.clear()
  }
}

function send(
  address: URL,
  body: string,
  { headers = {}, signal, allowPrivate, maxBytes, resolve: resolver }: PostOptions & { readonly signal: AbortSignal },
): Promise<Posted> {
  const how: RequestOptions = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    signal,
    agent: false, // closes the connection after the request
    ...(!allowPrivate && { lookup: lookupPublic(resolver) }),
  }
  return new Promise<Posted>((resolve, reject) => {
    // Loaded late: it would be the slowest part of a command that posts nothing.
    const { request } = process.getBuiltinModule(address.protocol === 'https:' ? 'node:https' : 'node:http')
    const sent = request(address, how, (response) => {
      read(response, maxBytes)
        .then(resolve, reject)
        .finally(() => sent.destroy())
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Posted> {
  const stored = new CappedOutput({ head: maxBytes, tail: 0 })
  let total = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    stored.push(chunk)
    total += chunk.length
    if (total > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`)
  }
  if (!response.complete) throw new Error('the answer ended too early')
  return { status: response.statusCode ?? 0, text: stored.result().head }
}
