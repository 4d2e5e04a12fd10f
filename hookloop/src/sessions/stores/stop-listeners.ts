import type { StopRequest } from '../../state/stop-request.ts'
import type { Polling } from './session-watchers.ts'

/** Reads the requests that are stored for these sessions, by their id. */
type ReadStops = (
  ids: readonly string[],
) => ReadonlyMap<string, StopRequest> | Promise<ReadonlyMap<string, StopRequest>>

type Listen = (request: StopRequest) => void

/** The runs of a store that other processes may stop. The store is polled only while there are some. */
export class StopListeners {
  readonly #listeners = new Map<Listen, string>()
  readonly #read: ReadStops
  readonly #polling: Polling | undefined

  /** Without polling, requests come from this process only, by `check`. */
  constructor(read: ReadStops, polling?: Polling) {
    this.#read = read
    this.#polling = polling
  }

  /** Calls a function once when the run of a session is to stop, unless it was removed before. */
  add(id: string, listen: Listen): void {
    if (this.#listeners.size === 0) this.#polling?.start()
    this.#listeners.set(listen, id)
    if (this.#polling === undefined) void this.check(id)
  }

  remove(listen: Listen): void {
    if (this.#listeners.delete(listen) && this.#listeners.size === 0) this.#polling?.stop()
  }

  /** Reads what is requested of all runs, or of one session. Runs that start meanwhile are not meant. */
  async check(only?: string): Promise<void> {
    const meant = [...this.#listeners].filter(([, id]) => only === undefined || id === only)
    if (meant.length === 0) return
    try {
      const read = this.#read([...new Set(meant.map(([, id]) => id))])
      const requests = read instanceof Promise ? await read : read
      for (const [listen, id] of meant) this.#call(listen, requests.get(id))
    } catch {
      // the next check, or the next write of the run, which reports it
    }
  }

  #call(listen: Listen, request: StopRequest | undefined): void {
    if (request === undefined || !this.#listeners.has(listen)) return
    this.remove(listen)
    listen(request)
  }
}
