import { checkOptions, invalidOption } from '../../state/check-options.ts'
import type { AgentEvent } from '../../state/event.ts'
import { isJsonObject } from '../../state/json.ts'
import { checkSessionId, sessionCorrupt, type WatchOptions } from './store.ts'

/** Some events of a session, in order. */
export type EventPage = {
  /** Which session it is: another one has the same id if the session was deleted and created again. */
  readonly session: unknown
  readonly events: readonly NumberedText[]
  /** The number of the last event of the page; after Infinity, of the session. */
  readonly last: number
}

export type NumberedText = { readonly seq: number; readonly text: string }

/**
 * Reads the first events after a number; after Infinity, none. Undefined if the session does not exist. A page is small, so
 * that a slow reader does not use much memory; an empty one means that there are no more events now.
 */
export type ReadEvents = (after: number) => EventPage | undefined | Promise<EventPage | undefined>

/** A page ends with the row that exceeds this length. */
export const PAGE_CHARACTERS = 65_536

/** How a store learns what other processes have written. It runs only while there are watchers. */
export type Polling = { start(): void; stop(): void }

/** Polls in intervals. If a poll takes long, the next one is later, so that polling never takes more than a tenth of the time. */
export function pollEvery(ms: number, poll: () => void): Polling {
  let timer: NodeJS.Timeout | undefined
  const run = (): void => {
    const started = performance.now()
    poll()
    const took = performance.now() - started
    if (timer !== undefined) timer = setTimeout(run, Math.max(ms, 9 * took))
  }
  return {
    start: () => void (timer = setTimeout(run, ms)),
    stop() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}

/** The watchers of a store. */
export class EventWatchers {
  readonly #polling: Polling | undefined
  readonly #watchers = new Map<string, Set<Watcher>>()

  constructor(polling?: Polling) {
    this.#polling = polling
  }

  /** The ids of the sessions that are watched. */
  get ids(): Iterable<string> {
    return this.#watchers.keys()
  }

  /** Implements `SessionStore.watch`. `open` returns a new reader, which may remember its place. */
  watch(id: string, options: WatchOptions, open: () => ReadEvents): AsyncIterable<AgentEvent> {
    checkSessionId(id)
    checkOptions('watch', options, ['after', 'follow', 'signal'])
    const { after = 0, follow = true, signal } = options
    if (!(Number.isSafeInteger(after) && after >= 0) && after !== Infinity)
      throw invalidOption('watch', '"after" must be a whole number, 0 or more, or Infinity', after)
    // "From now on" is from this call, not from the first event that is waited for.
    const start = after === Infinity ? lastEvent(open()) : Promise.resolve(after)
    start.catch(() => undefined) // reported to the reader
    return { [Symbol.asyncIterator]: () => this.#iterate({ id, signal, start, follow, read: open() }) }
  }

  /** Wakes the watchers of a session. Without an id: all. */
  changed(id?: string): void {
    if (id !== undefined) this.#watchers.get(id)?.forEach((each) => each.wake())
    else for (const watchers of this.#watchers.values()) watchers.forEach((each) => each.wake())
  }

  /** Ends all watchers. */
  close(): void {
    for (const watchers of this.#watchers.values()) watchers.forEach((each) => each.stop())
  }

  #iterate(of: Followed & { readonly signal: AbortSignal | undefined }): AsyncIterator<AgentEvent> {
    const watcher = new Watcher()
    const stop = (): void => watcher.stop()
    if (of.signal?.aborted === true) stop()
    const events = watchEvents(of, watcher, () => {
      this.#add(of.id, watcher)
      of.signal?.addEventListener('abort', stop, { once: true })
      return () => {
        of.signal?.removeEventListener('abort', stop)
        this.#remove(of.id, watcher)
      }
    })
    return {
      next: () => events.next(),
      // A generator that waits would only end with the next event.
      return: () => {
        stop()
        return events.return(undefined)
      },
    }
  }

  #add(id: string, watcher: Watcher): void {
    const isFirst = this.#watchers.size === 0
    const others = this.#watchers.get(id)
    if (others === undefined) this.#watchers.set(id, new Set([watcher]))
    else others.add(watcher)
    if (isFirst) this.#polling?.start()
  }

  #remove(id: string, watcher: Watcher): void {
    const others = this.#watchers.get(id)
    others?.delete(watcher)
    if (others?.size === 0) this.#watchers.delete(id)
    if (this.#watchers.size === 0) this.#polling?.stop()
  }
}

type Followed = {
  readonly id: string
  readonly start: Promise<number>
  readonly follow: boolean
  readonly read: ReadEvents
}

/** Something may have changed since `isChanged` was set to false. */
class Watcher {
  isStopped = false
  isChanged = false
  #resolve: (() => void) | undefined

  wake(): void {
    this.isChanged = true
    this.#resolve?.()
  }

  stop(): void {
    this.isStopped = true
    this.wake()
  }

  async change(): Promise<void> {
    if (!this.isChanged) await new Promise<void>((resolve) => (this.#resolve = resolve))
  }
}

/** The events of a session, whatever its store is. `register` is called before the first read, and what it returns at the end. */
async function* watchEvents(
  { id, start, follow, read }: Followed,
  watcher: Watcher,
  register: () => () => void,
): AsyncGenerator<AgentEvent, undefined> {
  if (watcher.isStopped) return
  const unregister = register()
  try {
    let after = await start
    let session: unknown
    while (!watcher.isStopped) {
      watcher.isChanged = false
      const page = await read(after)
      if (session !== undefined && page?.session !== session) return // it was deleted
      session = page?.session
      for (const { seq, text } of page?.events ?? []) {
        if (watcher.isStopped) return
        yield toEvent(id, seq, text)
        after = seq
      }
      // Between pages, other work of this process has its turn.
      if (page !== undefined && page.events.length > 0) await new Promise((resolve) => setImmediate(resolve))
      else if (follow) await watcher.change()
      else return
    }
  } finally {
    unregister()
  }
}

async function lastEvent(read: ReadEvents): Promise<number> {
  return (await read(Infinity))?.last ?? 0
}

function toEvent(id: string, seq: number, text: string): AgentEvent {
  const event = parsed(text)
  if (isJsonObject(event) && event['seq'] === seq) return event as unknown as AgentEvent
  throw sessionCorrupt(id, `its event ${seq} is not a JSON object with the field seq ${seq}`)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
