import type { IncomingMessage, ServerResponse } from 'node:http'
import { AgentError } from '../errors.ts'
import { checkOptions } from '../values/check-options.ts'
import type { SessionWorker } from './turn-driver.ts'

/** Options of `workerHealth`. */
export type WorkerHealthOptions = {
  /** Receives why the store or the queue could not be reached, at most once per second. Default: it is not reported. */
  readonly onError?: (error: unknown) => void
}

/** A check that takes longer has failed: probes do not wait long. */
const TIMEOUT_MS = 2_000

/** Requests within this time share one check, so that many requests do not become many queries. */
const SHARED_MS = 1_000

const headers = {
  'cache-control': 'no-store',
  connection: 'close',
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
}

/**
 * Answers the probes of an orchestrator, as a listener for `createServer` of `node:http`. `GET /healthz` answers 200 while the
 * process lives. `GET /readyz` answers 200 while the worker takes turns, and 503 while it starts or drains, or while the store
 * or the queue cannot be reached.
 *
 * @example
 * const worker = serveSessions({ agent, connectionString })
 * createServer(workerHealth(worker)).listen(8081)
 */
export function workerHealth(
  worker: SessionWorker | Promise<SessionWorker>,
  options: WorkerHealthOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  checkOptions('workerHealth', options, ['onError'])
  const { onError = () => undefined } = options
  let state: SessionWorker | 'starting' | 'failed' = 'starting'
  Promise.resolve(worker).then(
    (started) => (state = started),
    () => (state = 'failed'),
  )
  let shared: { readonly at: number; readonly isReachable: Promise<boolean> } | undefined
  const isReachable = (started: SessionWorker): Promise<boolean> => {
    if (shared === undefined || performance.now() - shared.at > SHARED_MS)
      shared = { at: performance.now(), isReachable: reach(started, onError) }
    return shared.isReachable
  }
  const readiness = async (): Promise<string> => {
    if (typeof state === 'string') return state
    if (state.isDraining) return 'draining'
    if (!(await isReachable(state))) return 'unreachable'
    return state.isDraining ? 'draining' : READY
  }
  return (request, response) => {
    const answer = (status: number, text: string): void => void response.writeHead(status, headers).end(`${text}\n`)
    const [path] = (request.url ?? '').split('?', 1)
    if (path !== '/healthz' && path !== '/readyz') answer(404, 'not found')
    else if (request.method !== 'GET' && request.method !== 'HEAD') answer(405, 'method not allowed')
    else if (path === '/healthz') answer(200, 'ok')
    else void readiness().then((text) => answer(text === READY ? 200 : 503, text))
  }
}

const READY = 'ready'

async function reach(worker: SessionWorker, onError: (error: unknown) => void): Promise<boolean> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new AgentError('STORE_FAILED', `The store or the queue did not answer within ${TIMEOUT_MS} ms.`)),
    TIMEOUT_MS,
  )
  try {
    await Promise.race([worker.check(), late])
    return true
  } catch (error) {
    onError(error)
    return false
  } finally {
    clearTimeout(timer)
  }
}
