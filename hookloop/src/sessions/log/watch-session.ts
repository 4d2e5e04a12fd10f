import { checkOptions } from '../../values/check-options.ts'
import type { AgentEvent, EmittedEvent } from '../../core/state/event.ts'
import { isJsonObject } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { sessionCorrupt, type Piece, type SessionStore } from '../stores/store.ts'
import { eventsOf, insideOf } from './record-events.ts'
import { snapshotIn } from './read-session.ts'
import { noLine, type LineEnd } from './session-log.ts'
import { SessionReader } from './session-reader.ts'
import type { NumberedRecord } from './session-records.ts'

/** From where to follow the events of a session, and until when. */
export type WatchOptions = {
  /** Only events after this number. Infinity: only events that happen from now on. Default 0: all events. */
  readonly after?: number
  /** `false`: ends with the last event that is stored now, and at once if there is no session. Default true: waits for more. */
  readonly follow?: boolean
  /** Ends the watcher when it aborts. Default none. */
  readonly signal?: AbortSignal
}

/** The numbers of the events of a line: those of its record, what a closed step says of it, and pieces. */
const NUMBERS = 1_000_000
const OF_STEP = 50
const FIRST_PIECE = 100

/** The number of an event that a record stands for. */
export function eventSeq(line: number, index: number): number {
  return line * NUMBERS + index
}

/** The number of a piece that was emitted after a line. */
export function pieceSeq(line: number, index: number): number {
  return line * NUMBERS + Math.min(FIRST_PIECE + index, NUMBERS - 1)
}

/**
 * Follows the events of a session, from any process and without locking it: all events after a number, in order, none twice and
 * none left out, then each new one. It waits for a session that does not exist yet, and does not end with a run. It ends when
 * the session is deleted, the signal aborts, the store is closed, or the reader leaves the loop. Of earlier turns, it has what
 * records say: not how an answer was written, nor what hooks did.
 *
 * @example
 * for await (const event of watchSession(store, 'chat-1')) if (event.type === 'text') process.stdout.write(event.delta)
 */
export function watchSession(store: SessionStore, id: string, options: WatchOptions = {}): AsyncIterable<AgentEvent> {
  checkOptions('watchSession', options, ['after', 'follow', 'signal'])
  const { after = 0, follow = true, signal } = options
  // "From now on" is from this call, not from the first event that is waited for.
  const start = after === Infinity ? lastSeq(store, id) : Promise.resolve(after)
  start.catch(() => undefined) // reported to the reader
  return {
    [Symbol.asyncIterator]() {
      const change = new Change()
      if (signal?.aborted === true) change.end()
      const events = eventsAfter({ store, id, start, follow, signal }, change)
      return {
        next: () => events.next(),
        // A generator that waits would only end with the next event.
        return: () => {
          change.end()
          return events.return(undefined)
        },
      }
    },
  }
}

type Watching = {
  readonly store: SessionStore
  readonly id: string
  readonly start: Promise<number>
  readonly follow: boolean
  readonly signal: AbortSignal | undefined
}

async function* eventsAfter(watching: Watching, change: Change): AsyncGenerator<AgentEvent, undefined> {
  const { store, id, follow, signal } = watching
  if (change.hasEnded) return
  const stop = (): void => change.end()
  signal?.addEventListener('abort', stop, { once: true })
  const unwatch = follow ? store.watch(id, () => change.notify(), stop) : undefined
  try {
    let after = await watching.start
    let reader: EventReader | undefined
    while (!change.hasEnded) {
      change.clear()
      const page = await readAgain(change, async () => {
        reader ??= await openReader(store, id, after)
        return reader?.read(after)
      })
      if (change.hasEnded || page === 'deleted') return
      for (const event of page?.events ?? []) {
        if (change.hasEnded) return
        yield event
        after = event.seq
      }
      // Between pages, other work of this process has its turn.
      if (page?.hasMore === true) await new Promise((resolve) => setImmediate(resolve))
      else if (follow) await change.wait()
      else return
    }
  } finally {
    unwatch?.()
    signal?.removeEventListener('abort', stop)
  }
}

/** Something may have changed since `clear`. */
class Change {
  hasEnded = false
  #hasChanged = false
  #resolve: (() => void) | undefined

  clear(): void {
    this.#hasChanged = this.hasEnded
  }

  notify(): void {
    this.#hasChanged = true
    this.#resolve?.()
  }

  end(): void {
    this.hasEnded = true
    this.notify()
  }

  async wait(): Promise<void> {
    if (!this.#hasChanged) await new Promise<void>((resolve) => (this.#resolve = resolve))
  }

  /** Waits for a time, or until something changes. */
  async pause(ms: number): Promise<void> {
    const timer = setTimeout(() => this.notify(), ms)
    await this.wait()
    clearTimeout(timer)
  }
}

/** So many failures in a row are about a minute. */
const MAX_FAILURES = 17
const MAX_PAUSE_MS = 5_000

/** Reads again after a failure that may be over soon. */
async function readAgain<T>(change: Change, read: () => Promise<T>): Promise<T | undefined> {
  for (let failures = 0; !change.hasEnded; failures++) {
    try {
      return await read()
    } catch (error) {
      if (change.hasEnded) break // the store was closed while it was read
      if (failures >= MAX_FAILURES || !isConnectionLost(error)) throw error
      change.clear()
      await change.pause(Math.min(MAX_PAUSE_MS, 50 * 2 ** failures))
    }
  }
  return undefined
}

/** Whether a database cannot be reached now, in contrast to an error that it answers with. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof AgentError) || error.code !== 'STORE_FAILED' || !(error.cause instanceof Error)) return false
  const { code } = error.cause as NodeJS.ErrnoException
  return (
    code === undefined || /^(?:E(?:AI_|CONN|HOST|NET|NOENT|NOTFOUND|PIPE|TIMEDOUT)|(?:08|53|57P)[0-9A-Z]+$)/.test(code)
  )
}

/** The number of the last event that is stored now. */
async function lastSeq(store: SessionStore, id: string): Promise<number> {
  const { head = {} } = (await store.read(id, { after: Infinity })) ?? {}
  const first = (snapshotIn(head)?.seq ?? -1) + 1
  const part = { after: first - 1, pieces: { after: eventSeq(first, 0), before: Infinity } }
  const { lines = [], pieces = [] } = (await store.read(id, part)) ?? {}
  const last = first + lines.length - 1
  return Math.max(0, pieceSeq(last, 0) - 1, pieces.at(-1)?.seq ?? 0)
}

/** A reader of the events after a number. Undefined if there is no session. */
export async function openReader(store: SessionStore, id: string, after = 0): Promise<EventReader | undefined> {
  const stored = await store.read(id, { after: Infinity })
  if (stored === undefined) return undefined
  const snapshot = snapshotIn(stored.head)
  const isAfter = snapshot !== undefined && after >= eventSeq(snapshot.seq + 1, 0)
  return new EventReader(store, id, isAfter ? snapshot : noLine)
}

type Page = { readonly events: readonly AgentEvent[]; readonly hasMore: boolean }

const PAGE_LINES = 256

/** Reads the events of a session, page by page. */
export class EventReader {
  readonly #store: SessionStore
  readonly #id: string
  readonly #reader: SessionReader
  #key: string | undefined
  /** The number of the last piece that was read. */
  #piece: number
  /** The events of a step without pieces, until its record is read: it says what happened in it. */
  #held: AgentEvent[] | undefined

  constructor(store: SessionStore, id: string, after: LineEnd) {
    this.#store = store
    this.#id = id
    this.#reader = new SessionReader({ id, after })
    this.#piece = eventSeq(after.seq + 1, 0) - 1
  }

  /** The next events after a number. */
  async read(after: number): Promise<Page | 'deleted' | undefined> {
    const { seq } = this.#reader.end
    const before = seq + 1 + PAGE_LINES
    const part = { after: seq, before, pieces: { after: this.#piece, before: eventSeq(before, 0) } }
    const stored = await this.#store.read(this.#id, part)
    this.#key ??= stored?.key
    if (stored === undefined || stored.key !== this.#key) return 'deleted'
    const { lines, pieces = [] } = stored
    const hasMore = lines.length === PAGE_LINES
    const events = this.#eventsIn(lines, pieces)
    if (!hasMore) this.#release(events) // the step is open
    const end = eventSeq(this.#reader.end.seq + 1, 0)
    for (const { seq: number, text } of pieces) {
      if (number >= end) break
      this.#piece = number
      events.push(this.#placed(toEvent(this.#id, number, text), number))
    }
    events.sort((a, b) => a.seq - b.seq)
    return { events: events.filter((event) => event.seq > after), hasMore }
  }

  #eventsIn(lines: readonly string[], pieces: readonly Piece[]): AgentEvent[] {
    const events: AgentEvent[] = []
    for (const record of this.#reader.decode(lines)) {
      const isAnswer = record.t === 'end' && record.key.kind === 'model'
      if (isAnswer && !this.#hasPieces(pieces)) this.#held ??= []
      const run = record.t === 'hooks' ? record.run : undefined
      const stoodFor = this.#stoodFor(record)
      const inside = this.#held && insideOf(record, this.#reader.log)
      this.#reader.add(record)
      const to = this.#held ?? events
      for (const [i, event] of stoodFor.entries()) to.push(this.#placed(event, eventSeq(record.seq, i), run))
      for (const [i, { line, event }] of inside?.entries() ?? [])
        to.push(this.#placed(event, eventSeq(line, OF_STEP + i)))
      if (this.#reader.checkpoint === record.seq) this.#release(events)
    }
    return events
  }

  /** Whether pieces tell what happened in the open step. Those of earlier turns are deleted. */
  #hasPieces(pieces: readonly Piece[]): boolean {
    const { checkpoint, end } = this.#reader
    const [first, last] = [eventSeq(checkpoint, 0), eventSeq(end.seq + 1, 0)]
    return this.#piece >= first || pieces.some(({ seq }) => seq >= first && seq < last)
  }

  #release(events: AgentEvent[]): void {
    events.push(...(this.#held ?? []))
    this.#held = undefined
  }

  #stoodFor(record: NumberedRecord): readonly EmittedEvent[] {
    try {
      return eventsOf(record, this.#reader.log)
    } catch (error) {
      throw error instanceof AgentError ? sessionCorrupt(this.#id, error.message) : error
    }
  }

  #placed(event: EmittedEvent, seq: number, run = this.#reader.run): AgentEvent {
    return { seq, session: this.#id, run, ...event }
  }
}

function toEvent(id: string, seq: number, text: string): EmittedEvent {
  try {
    const event = JSON.parse(text) as unknown
    if (isJsonObject(event) && typeof event['type'] === 'string') return event as unknown as EmittedEvent
  } catch {
    // reported below
  }
  throw sessionCorrupt(id, `its event ${seq} is not a JSON object with a type`)
}
