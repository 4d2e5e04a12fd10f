import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { CappedOutput } from './capped-output.ts'
import { innerAddress, isInnerAddress, lookupPublic } from './public-address.ts'

export type PostOptions = {
  readonly headers?: { readonly [name: string]: string }
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Bytes of the answer that are read; a longer one is an error. */
  readonly maxBytes: number
  /** Whether addresses of this machine and its network may be asked. */
  readonly allowInner: boolean
}

export type Posted = { readonly status: number; readonly text: string }

/** Posts JSON once: no redirect is followed, no cookie kept, nothing tried again. Rejects with words. */
export function postJson(url: string, body: string, options: PostOptions): Promise<Posted> {
  const { headers = {}, timeoutMs, signal, allowInner } = options
  const address = new URL(url)
  const host = address.hostname.replace(/^\[|\]$/g, '')
  if (address.protocol !== 'http:' && address.protocol !== 'https:') {
    return Promise.reject(new Error(`${address.protocol} is not a protocol to post to`))
  }
  if (!allowInner && isIP(host) !== 0 && isInnerAddress(host)) return Promise.reject(innerAddress(host, host))
  const limit = AbortSignal.timeout(timeoutMs)
  const all = signal === undefined ? limit : AbortSignal.any([signal, limit])
  const how: RequestOptions = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    signal: all,
    agent: false, // its connection ends with it
    ...(!allowInner && { lookup: lookupPublic }),
  }
  return new Promise<Posted>((resolve, reject) => {
    const send = address.protocol === 'https:' ? requestHttps : requestHttp
    const sent = send(address, how, (response) => {
      read(response, options.maxBytes).then(resolve, reject)
    })
    sent.on('error', (error) => reject(limit.aborted ? new Error(`no answer within ${timeoutMs} ms`) : error))
    sent.end(body)
  })
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Posted> {
  const kept = new CappedOutput({ head: maxBytes, tail: 0 })
  let total = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    kept.push(chunk)
    total += chunk.length
    if (total > maxBytes) {
      response.destroy()
      throw new Error(`the answer is longer than ${maxBytes} bytes`)
    }
  }
  return { status: response.statusCode ?? 0, text: kept.result().head }
}
