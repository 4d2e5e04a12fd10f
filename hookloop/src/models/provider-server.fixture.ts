import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { LLMock, type FixtureResponse } from '@copilotkit/aimock'
import type { JsonObject } from '../values/json.ts'

// A server with the protocols of all providers (aimock), behind a proxy that can fail: it cuts the connection, stalls,
// returns invalid replies, and notices when the client disconnects.

/** What the server does with one request. */
export type Turn = FixtureResponse | Mishap | RawAnswer

export type Mishap = {
  /** The full reply, and the text after which it stops. */
  readonly says: FixtureResponse
  readonly upTo: string
  /** Whether to stop inside an event of the stream instead of after it. */
  readonly withinEvent?: true
  /** `cut`: the connection breaks. `ended`: the response ends normally. `stalled`: nothing more is sent. */
  readonly ending: 'cut' | 'ended' | 'stalled'
}

export type RawAnswer = {
  readonly status?: number
  readonly headers?: { readonly [name: string]: string }
  /** A fixed text, or computed from the reply of aimock. `undefined`: no response at all. */
  readonly body: string | undefined | ((said: string) => string)
  /** The reply of aimock that the body is computed from. */
  readonly says?: FixtureResponse
  readonly afterMs?: number
  /** Sends the stream in four pieces with this delay between them. */
  readonly piecesEveryMs?: number
}

export type ReceivedRequest = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: JsonObject
  /** Settles when the partial reply has been sent. */
  readonly halfSent: Promise<void>
  /** Resolves when the client disconnected before the end of the reply, and rejects if it does not soon. */
  readonly disconnected: () => Promise<void>
}

export type ProviderServer = {
  readonly url: string
  readonly requests: readonly ReceivedRequest[]
  /** Settles when this many requests have arrived. */
  received(count: number): Promise<void>
  /** How it replies to the next requests, in order. */
  next(...turns: readonly Turn[]): void
  close(): Promise<void>
}

export async function startServer(): Promise<ProviderServer> {
  const turns: Turn[] = []
  const requests: ReceivedRequest[] = []
  const arrivals = new EventEmitter()
  let saying: FixtureResponse
  const mock = new LLMock({ port: 0, logLevel: 'silent' })
  mock.on({ predicate: () => true }, () => saying)
  await mock.start()
  const answering = new Set<Promise<void>>()
  const front = createServer((request, response) => void answering.add(answer(request, response)))
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await textOf(request)
    const closed = new Promise<void>((resolve) => {
      response.once('close', () => response.writableFinished || resolve())
    })
    const { promise: halfSent, resolve: tellHalf } = Promise.withResolvers<void>()
    const { url: path = '', headers } = request
    requests.push({ path, headers, body: JSON.parse(body) as JsonObject, halfSent, disconnected: () => soon(closed) })
    arrivals.emit('request')
    const turn: Turn = turns.shift() ?? { status: 418, body: 'nothing more was expected' }
    if ('body' in turn) return answerRaw(turn, response, (says) => ask(request, body, says))
    const said = await ask(request, body, 'upTo' in turn ? turn.says : turn)
    response.writeHead(said.status, said.headers)
    if (!('upTo' in turn)) return void response.end(said.text)
    response.write(said.text.slice(0, placeOf(turn, said.text)), () => {
      tellHalf()
      if (turn.ending === 'cut') response.destroy()
      if (turn.ending === 'ended') response.end()
    })
  }

  async function ask({ url, headers, method = 'POST' }: IncomingMessage, body: string, says: FixtureResponse) {
    saying = says
    const { host: _host, connection: _connection, 'content-length': _length, ...rest } = headers
    const answered = await fetch(mock.url + url, { method, headers: rest as { [name: string]: string }, body })
    const stored = [...answered.headers].filter(([name]) => ['content-type', 'retry-after'].includes(name))
    return { status: answered.status, headers: Object.fromEntries(stored), text: await answered.text() }
  }

  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    requests,
    async received(count) {
      while (requests.length < count) await once(arrivals, 'request')
    },
    next: (...more) => void turns.push(...more),
    async close() {
      front.closeAllConnections()
      front.close()
      await Promise.all(answering)
      await mock.stop()
    },
  }
}

type Said = { readonly text: string; readonly headers: { readonly [name: string]: string } }

async function answerRaw(
  { status = 200, headers, body, says, afterMs = 0, piecesEveryMs = 0 }: RawAnswer,
  response: ServerResponse,
  ask: (says: FixtureResponse) => Promise<Said>,
): Promise<void> {
  if (body === undefined) return
  const said = says === undefined ? undefined : await ask(says)
  if (afterMs > 0) await delay(afterMs)
  response.writeHead(status, { 'content-type': 'application/json', ...said?.headers, ...headers })
  const text = typeof body === 'string' ? body : body(said?.text ?? '')
  if (piecesEveryMs === 0) return void response.end(text)
  const events = text.split(/(?<=\n\n)/)
  const length = Math.ceil(events.length / 4)
  for (let at = 0; at < events.length; at += length) {
    response.write(events.slice(at, at + length).join(''))
    await delay(piecesEveryMs)
  }
  response.end()
}

async function soon(event: Promise<void>): Promise<void> {
  const late = delay(30_000, undefined, { ref: false }).then(() =>
    Promise.reject(new Error('The client did not disconnect.')),
  )
  await Promise.race([event, late])
}

function placeOf({ upTo, withinEvent }: Mishap, whole: string): number {
  if (!whole.includes(upTo)) throw new Error(`The answer does not say "${upTo}": ${whole}`)
  const at = whole.indexOf(upTo) + upTo.length
  const event = withinEvent === true || whole.startsWith('{') ? -1 : whole.indexOf('\n\n', at)
  return event === -1 ? at : event + 12
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string
  return text
}
