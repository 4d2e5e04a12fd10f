import type { Api, ApiError, Streams } from '../../api.types.ts'

// The token comes after `#`, so it is never part of a request line. It is stored for this tab only, because a reload must work.

const KEY = 'hookloop-token'
const DATA = 'data: '

/** Takes the token out of the address, so that it is not in the history or in a link that the user copies. */
export function takeToken(): void {
  const [, token, route] = /^#token=([\w.~-]+)(?:&(.*))?$/.exec(location.hash) ?? []
  if (token === undefined) return
  sessionStorage.setItem(KEY, token)
  history.replaceState(null, '', `${location.pathname}#${route ?? '/'}`)
}

/** A call that failed: the code and the message of the studio, or `OFFLINE` if it does not answer. */
export class CallError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export async function call<Name extends keyof Api>(
  name: Name,
  request: Api[Name]['request'],
  signal?: AbortSignal,
): Promise<Api[Name]['response']> {
  const response = await post(`/api/${name}`, request, signal)
  return (await response.json()) as Api[Name]['response']
}

/** The lines of a stream, until the studio ends it or the signal aborts. */
export async function* stream<Name extends keyof Streams>(
  name: Name,
  request: Streams[Name]['request'],
  signal: AbortSignal,
): AsyncGenerator<Streams[Name]['line']> {
  const { body } = await post(`/stream/${name}`, request, signal)
  if (body === null) return
  let rest = ''
  for await (const text of read(body.pipeThrough(new TextDecoderStream()))) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines)
      if (line.startsWith(DATA)) yield JSON.parse(line.slice(DATA.length)) as Streams[Name]['line']
  }
}

/**
 * Follows a stream, and connects again after a failure: `open` says from where. Waits longer after each failure, up to 8 s.
 * A studio that rejects the token is not asked again.
 */
export function follow<Line>(
  open: (signal: AbortSignal) => AsyncIterable<Line>,
  on: { line(line: Line): void; state(state: 'open' | 'lost', error?: CallError): void },
): () => void {
  const ended = new AbortController()
  const { signal } = ended
  void (async () => {
    for (let failures = 0; !signal.aborted; failures++) {
      let error: CallError | undefined
      try {
        for await (const line of open(signal)) {
          if (signal.aborted) return
          failures = 0
          on.state('open')
          on.line(line)
        }
      } catch (cause) {
        error = toCallError(cause)
      }
      if (signal.aborted) return
      on.state('lost', error)
      if (error?.code === 'TOKEN_INVALID' || error?.code === 'SESSION_UNKNOWN') return
      await new Promise((resolve) => setTimeout(resolve, Math.min(8_000, 250 * 2 ** failures)))
    }
  })()
  return () => ended.abort()
}

export function toCallError(cause: unknown): CallError {
  if (cause instanceof CallError) return cause
  return new CallError('OFFLINE', 'The studio does not answer. Is `hookloop studio` still running?')
}

async function post(path: string, request: object, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ''}` },
    body: JSON.stringify(request),
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    ...(signal && { signal }),
  })
  if (response.ok) return response
  if (response.status === 401)
    throw new CallError('TOKEN_INVALID', 'The link is not valid. Open the link that `hookloop studio` printed last.')
  const answer = (await response.json().catch(() => undefined)) as ApiError | undefined
  throw new CallError(
    answer?.error.code ?? 'FAILED',
    answer?.error.message ?? `The studio answered ${response.status}.`,
  )
}

/** Not every browser can iterate over a stream. */
async function* read(body: ReadableStream<string>): AsyncGenerator<string> {
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
