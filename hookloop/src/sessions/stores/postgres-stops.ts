import type { StopRequest } from '../../state/stop-request.ts'
import type { Listener } from './postgres-listener.ts'
import { StopListeners } from './stop-listeners.ts'
import { readStop } from './store.ts'
import { pollEvery, type Polling } from './session-watchers.ts'

/** How often it is checked whether a run is to stop, without and with notifications. */
const [POLL_MS, LISTENING_POLL_MS] = [500, 5_000]
/** Most runs are so short that a connection of their own is not worth it, and one run often follows another. */
const [LISTEN_AFTER_MS, LISTEN_AFTER_RUN_MS] = [400, 2_000]

type ReadStops = (ids: readonly string[]) => Promise<readonly { readonly id: string; readonly stop: string | null }[]>

/** The runs of a Postgres store that other processes may stop. `end` stops listening at once. */
export function postgresStops(read: ReadStops, listener: Listener): { stops: StopListeners; end: () => void } {
  let isListening = false
  let timer: NodeJS.Timeout | undefined
  const later = (ms: number, listens: boolean): void => {
    clearTimeout(timer)
    timer = setTimeout(() => listen(listens), ms).unref()
  }
  const listen = (listens: boolean): void => {
    if (listens === isListening) return
    isListening = listens
    if (listens) listener.start()
    else listener.stop()
  }
  const poll = pollEvery(
    () => (listener.isListening ? LISTENING_POLL_MS : POLL_MS),
    () => stops.check(),
    { ref: false },
  )
  const polling: Polling = {
    start() {
      poll.start()
      later(LISTEN_AFTER_MS, true)
    },
    stop() {
      poll.stop()
      later(LISTEN_AFTER_RUN_MS, false)
    },
  }
  const stops: StopListeners = new StopListeners(async (ids) => toRequests(await read(ids)), polling)
  return {
    stops,
    end() {
      clearTimeout(timer)
      listen(false)
    },
  }
}

function toRequests(
  rows: readonly { readonly id: string; readonly stop: string | null }[],
): ReadonlyMap<string, StopRequest> {
  const requests = new Map<string, StopRequest>()
  for (const { id, stop } of rows) {
    const request = readStop(stop)
    if (request !== undefined) requests.set(id, request)
  }
  return requests
}
