import type { JsonObject } from '../values/json.ts'
import { shapeOf, type Shape } from '../values/shape.ts'
import { calls, streams } from './api.ts'
import type { Context, StudioOptions } from './context.ts'
import { HttpProblem } from './request-rules.ts'
import { RunReader } from './runs.ts'
import { serveStudio, type StudioServer } from './server.ts'
import { ListPoller } from './sessions.ts'

/** Starts a studio. Closing it cancels the runs that it has started, and waits for them. */
export async function startStudio(options: StudioOptions): Promise<StudioServer> {
  const { store, onError } = options
  const closing = new AbortController()
  const running = new Set<Promise<unknown>>()
  const context: Context = {
    options,
    store,
    reader: new RunReader(store),
    poller: new ListPoller(store),
    signal: closing.signal,
    inBackground: (run) => {
      const ended = run.catch(onError).finally(() => running.delete(ended))
      running.add(ended)
    },
  }
  const server = await serveStudio(
    {
      call: async (name, request) => find(calls, name, request)(request as never, context, closing.signal),
      stream: (name, request, signal) =>
        find(streams, name, request)(request as never, context, signal) as AsyncIterable<unknown>,
    },
    options,
  )
  return {
    url: server.url,
    close: async () => {
      closing.abort()
      await server.close()
      await Promise.all(running)
    },
  }
}

type Endpoint = {
  readonly takes: { readonly [field: string]: Shape }
  readonly run: (request: never, context: Context, signal: AbortSignal) => unknown
}

/** The function of an endpoint, if there is one and the request has its fields. */
function find(all: { readonly [name: string]: Endpoint }, name: string, request: JsonObject): Endpoint['run'] {
  if (!Object.hasOwn(all, name)) throw new HttpProblem(404, 'NOT_FOUND', 'There is no such call.')
  const { takes, run } = all[name]!
  const problem = shapeOf(takes)(request, '')
  if (problem !== undefined) throw new HttpProblem(400, 'REQUEST_INVALID', `The request is invalid: ${problem}.`)
  return run
}
