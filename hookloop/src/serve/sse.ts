/** A server-sent event. Data that is not a text is sent as JSON. */
export type SseEvent<T = unknown> = { readonly id?: string; readonly data: T }

export type SseOptions = {
  /** How long nothing is sent before a comment is: proxies close connections that are idle. */
  readonly keepAliveMs: number
  /** How long the source may have no event, and the client may take none. */
  readonly idleMs: number
  readonly headers?: { readonly [name: string]: string }
}

/**
 * Streams events until they end, the request is aborted, the client leaves, or one of both is idle for too long: then the signal
 * aborts, and the source must end. The next event is read from the source when the client has taken the last one, so a slow
 * client costs no memory.
 */
export function sseResponse(
  request: Pick<Request, 'signal'>,
  events: (signal: AbortSignal) => AsyncIterator<SseEvent>,
  { keepAliveMs, idleMs, headers }: SseOptions,
): Response {
  const ending = new AbortController()
  request.signal.addEventListener('abort', () => ending.abort(), { once: true })
  const source = events(ending.signal)
  const encoder = new TextEncoder()
  let timer: ReturnType<typeof setInterval> | undefined
  let [since, isWaiting] = [performance.now(), false]
  const end = (): void => {
    clearInterval(timer)
    ending.abort()
    void source.return?.()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        timer = setInterval(
          () => {
            const isIdle = performance.now() - since >= idleMs
            if (isIdle && isWaiting) return ending.abort()
            if (isIdle) {
              end()
              return controller.error(new Error('The client takes no data.'))
            }
            if (isWaiting && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': keep-alive\n\n'))
          },
          Math.min(keepAliveMs, idleMs),
        )
      },
      async pull(controller) {
        ;[since, isWaiting] = [performance.now(), true]
        const { done, value } = await source.next().catch((error: unknown) => {
          end()
          throw error
        })
        ;[since, isWaiting] = [performance.now(), false]
        if (done !== true) return controller.enqueue(encoder.encode(toText(value)))
        clearInterval(timer)
        controller.close()
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  )
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no', // for nginx
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  })
}

function toText({ id, data }: SseEvent): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${text}\n\n`
}
