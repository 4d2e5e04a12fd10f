import { checkOptions, invalidOption } from '../../state/check-options.ts'
import type { AgentEvent } from '../../state/event.ts'
import { isJsonObject } from '../../state/json.ts'
import { checkSessionId, sessionCorrupt, type WatchOptions } from './store.ts'

/** Some events of a session, in order. */
export type EventPage = {
  /** Which session it is: another one has the same id if the session was deleted and created again. */
  readonly session: unknown
  readonly events: readonly NumberedText[]
  /** Whether there are more events after them. */
  readonly more: boolean
  /** The number of the last event of the page; after Infinity, of the session. */
  readonly last: number
}

export type NumberedText = { readonly seq: number; readonly text: string }

/**
 * Reads the first events after a number; after Infinity, none. Undefined if the session does not exist. A page is small, so
 * that a slow reader does not use much memory.
 */
export type ReadEvents = (after: number) => EventPage | undefined | Promise<EventPage | undefined>

/** A page ends with the row that exceeds this length. */
export const PAGE_CHARACTERS = 65_536

/** How a store learns what other processes have written. It runs only while there are watchers. */
export type Polling = { start(): void; stop(): void }

type WatchersOptions = {
  readonly polling?: Polling
  /** Whether a read that failed may succeed later. */
  readonly isTemporary?: (error: unknown) => boolean
}

/** So many failures in a row are about a minute. */
const MAX_FAILURES = 17
const MAX_PAUSE_MS = 5_000

/** Polls in intervals. If a poll takes long, the next one is later, so that polling never takes more than a tenth of the time. */
export function pollEvery(
  ms: () => number,
  poll: () => void | Promise<void>,
  /** Whether it keeps the process alive. Default true. */
  { ref = true } = {},
): Polling {
  let current: { timer?: NodeJS.Timeout } | undefined
  const runLater = (mine: { timer?: NodeJS.Timeout }, took: number): void => {
    if (current !== mine) return
    mine.timer = setTimeout(() => void run(mine), Math.max(ms(), 9 * took))
    if (!ref) mine.timer.unref()
  }
  const run = async (mine: { timer?: NodeJS.Timeout }): Promise<void> => {
    const started = performance.now()
    const polling = poll()
    const took = performance.now() - started
    if (polling !== undefined) await polling
    runLater(mine, took)
  }
  return {
    start: () => runLater((current = {}), 0),
    stop() {
      clearTimeout(current?.timer)
      current = undefined
    },
  }
}

/** The watchers of a store. */
export class EventWatchers {
  readonly #options: WatchersOptions
  readonly #watched = new Map<string, Watched>()
  readonly #starting = new Map<string, Promise<void>>()

  constructor(options: WatchersOptions = {}) {
    this.#options = options
  }

  /** The ids of the sessions that are watched. */
  get ids(): readonly string[] {
    return [...this.#watched.keys()]
  }

  /** Implements `SessionStore.watch`. `open` returns a new reader, which may remember its place. */
  watch(id: string, options: WatchOptions, open: () => ReadEvents): AsyncIterable<AgentEvent> {
    checkSessionId(id)
    checkOptions('watch', options, ['after', 'follow', 'signal'])
    const { after = 0, follow = true, signal } = options
    if (!(Number.isSafeInteger(after) && after >= 0) && after !== Infinity)
      throw invalidOption('watch', '"after" must be a whole number, 0 or more, or Infinity', after)
    // "From now on" is from this call, not from the first event that is waited for.
    const start = after === Infinity ? this.#findLast(id, open()) : Promise.resolve(after)
    start.catch(() => undefined) // reported to the reader
    return {
      [Symbol.asyncIterator]: () => this.#iterate({ id, signal, start, follow, read: retrying(open(), this.#options) }),
    }
  }

  /** Resolves when the watchers of a session that follow it from now on know its last event. A writer waits for it before it writes. */
  started(id: string): Promise<void> | undefined {
    return this.#starting.get(id)
  }

  #findLast(id: string, read: ReadEvents): Promise<number> {
    const last = lastEvent(read)
    const all: Promise<void> = Promise.allSettled([this.#starting.get(id), last]).then(() => {
      if (this.#starting.get(id) === all) this.#starting.delete(id)
    })
    this.#starting.set(id, all)
    return last
  }

  /** Wakes the watchers of a session. Without an id: all. */
  changed(id?: string): void {
    if (id !== undefined) this.#watched.get(id)?.watchers.forEach((each) => each.wake())
    else for (const { watchers } of this.#watched.values()) watchers.forEach((each) => each.wake())
  }

  /** Wakes the watchers of each session that has another version than at the last check, or whose version cannot be read. */
  check(versionOf: (id: string) => unknown): void {
    for (const [id, watched] of this.#watched) {
      let version: unknown = Symbol('unknown')
      try {
        version = versionOf(id)
      } catch {
        // the reads of the watchers report it
      }
      if (version === watched.version) continue
      watched.version = version
      watched.watchers.forEach((each) => each.wake())
    }
  }

  /** Ends all watchers. */
  close(): void {
    for (const { watchers } of this.#watched.values()) watchers.forEach((each) => each.stop())
    // Also of a reader that has stopped reading, which does not notice.
    if (this.#watched.size > 0) this.#options.polling?.stop()
    this.#watched.clear()
  }

  #iterate(of: Followed & { readonly signal: AbortSignal | undefined }): AsyncIterator<AgentEvent> {
    const watcher = new Watcher()
    const stop = (): void => watcher.stop()
    if (of.signal?.aborted === true) stop()
    const events = watchEvents(of, watcher, () => {
      if (of.follow) this.#add(of.id, watcher)
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
    const isFirst = this.#watched.size === 0
    const watched = this.#watched.get(id) ?? { watchers: new Set(), version: undefined }
    this.#watched.set(id, watched)
    watched.watchers.add(watcher)
    if (isFirst) this.#options.polling?.start()
  }

  #remove(id: string, watcher: Watcher): void {
    const watched = this.#watched.get(id)
    if (watched?.watchers.delete(watcher) !== true) return // the store was closed
    if (watched.watchers.size === 0) this.#watched.delete(id)
    if (this.#watched.size === 0) this.#options.polling?.stop()
  }
}

/** The watchers of one session, and its version at the last check. */
type Watched = { readonly watchers: Set<Watcher>; version: unknown }

type Followed = {
  readonly id: string
  readonly start: Promise<number>
  readonly follow: boolean
  readonly read: (after: number, watcher: Watcher) => ReturnType<ReadEvents>
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

  /** Waits for a time, or until something changes. */
  async pause(ms: number): Promise<void> {
    this.isChanged = this.isStopped
    const timer = setTimeout(() => this.wake(), ms)
    await this.change()
    clearTimeout(timer)
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
      const page = await read(after, watcher)
      if (watcher.isStopped) return
      if (session !== undefined && page?.session !== session) return // it was deleted
      session = page?.session
      for (const { seq, text } of page?.events ?? []) {
        if (watcher.isStopped) return
        if (seq <= after) throw sessionCorrupt(id, `its event ${seq} is stored twice`)
        yield toEvent(id, seq, text)
        after = seq
      }
      // Between pages, other work of this process has its turn.
      if (page?.more === true) await new Promise((resolve) => setImmediate(resolve))
      else if (follow) await watcher.change()
      else return
    }
  } finally {
    unregister()
  }
}

/** Reads again after a failure that may be over soon. */
function retrying(
  read: ReadEvents,
  { isTemporary }: WatchersOptions,
): (after: number, watcher: Watcher) => ReturnType<ReadEvents> {
  if (isTemporary === undefined) return read
  return async (after, watcher) => {
    for (let failures = 0; !watcher.isStopped; failures++) {
      try {
        return await read(after)
      } catch (error) {
        if (watcher.isStopped) break // the store was closed while it was read
        if (failures >= MAX_FAILURES || !isTemporary(error)) throw error
        await watcher.pause(Math.min(MAX_PAUSE_MS, 50 * 2 ** failures))
      }
    }
    return undefined
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
