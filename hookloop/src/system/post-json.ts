import type { IncomingMessage, RequestOptions } from 'node:http'
import { isIP } from 'node:net'
import { CappedOutput } from './capped-output.ts'
import { innerAddress, isInnerAddress, lookupPublic, type Resolve } from './public-address.ts'
import { Deadline } from './timeout.ts'

export type PostOptions = {
  readonly headers?: { readonly [name: string]: string }
  /** For all of it: finding the host, connecting, and the last byte of the answer. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Bytes of the answer that are read; a longer one is an error. */
  readonly maxBytes: number
  /** Whether addresses of this machine and its network may be asked. */
  readonly allowInner: boolean
  /** How names are resolved where inner addresses are refused. */
  readonly resolve?: Resolve
}

export type Posted = { readonly status: number; readonly text: string }

/** Rejected with when the time is over. */
export class NoAnswerInTime extends Error {}

/** Posts JSON once: no redirect is followed, no cookie kept, nothing tried again. Rejects with words. */
export async function postJson(url: string, body: string, options: PostOptions): Promise<Posted> {
  const { timeoutMs, signal, allowInner } = options
  const address = new URL(url)
  const host = address.hostname.replace(/^\[|\]$/g, '')
  if (address.protocol !== 'http:' && address.protocol !== 'https:') {
    throw new Error(`${address.protocol} is not a protocol to post to`)
  }
  if (!allowInner && isIP(host) !== 0 && isInnerAddress(host)) throw innerAddress(host, host)
  const deadline = new Deadline(signal)
  deadline.start(timeoutMs, () => new NoAnswerInTime(`no answer within ${timeoutMs} ms`))
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
  { headers = {}, signal, allowInner, maxBytes, resolve: resolver }: PostOptions & { readonly signal: AbortSignal },
): Promise<Posted> {
  const how: RequestOptions = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    signal,
    agent: false, // its connection ends with it
    ...(!allowInner && { lookup: lookupPublic(resolver) }),
  }
  return new Promise<Posted>((resolve, reject) => {
    // Not loaded before: it takes longer than all else of a command that posts nothing.
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
  const kept = new CappedOutput({ head: maxBytes, tail: 0 })
  let total = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    kept.push(chunk)
    total += chunk.length
    if (total > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`)
  }
  if (!response.complete) throw new Error('the answer ended too early')
  return { status: response.statusCode ?? 0, text: kept.result().head }
}
