import type { AgentState } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import { List } from '../../state/list.ts'
import { diffState } from '../../state/state-diff.ts'
import type { Journal } from '../../effects/record-effects.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { LineEncoder } from './session-log.ts'
import type { LoadedSession } from './read-session.ts'
import { encodeCall, encodeRecord } from './record-codec.ts'
import type { SessionRecord, StateRecord } from './session-records.ts'
import type { SessionReader } from './session-reader.ts'
import { takeSnapshot, type StoredPages } from './session-snapshot.ts'
import type { RunTime, WorkLimit } from '../../effects/run-time.ts'
import { isThenable } from '../../state/thenable.ts'
import { AgentError } from '../../errors.ts'
import { storeFailed, type PagesChange, type SessionWriter, type StoredEvent } from '../stores/store.ts'

/**
 * A snapshot is taken after so many characters of lines, as soon as few messages are left over that do not fill a page: they are
 * part of its record. Without such an opportunity it is taken after four times as many. After a long record it takes twice its length.
 */
const SNAPSHOT_CHARS = 98_304
const MAX_LEFT_OVER = 8

/** How long events without lines wait for each other: an answer has hundreds of pieces. */
const EVENTS_MS = 20

/** How long a store may take to answer when the run has reached its time limit or was cancelled. */
export const STORE_GRACE_MS = 5_000

/** The limit of a call of a store that a run waits for: without an answer nothing can be stored, not even why the run ended. */
export const storeLimit: WorkLimit = {
  ms: Infinity,
  abort: () => 0,
  graceMs: () => STORE_GRACE_MS,
  leave: (end) => {
    const why = end === 'cancel' ? 'was cancelled' : 'has reached its time limit'
    return new AgentError('STORE_FAILED', `The store has not answered, and the run ${why}.`)
  },
}

/** Appends records to a session that is locked, in as few writes as possible. */
export class SessionJournal implements Journal {
  /** The time of the run that writes. */
  time: RunTime | undefined
  readonly #writer: SessionWriter
  readonly #encoder: LineEncoder
  readonly #reader: SessionReader
  #lastLine: string
  #pages: StoredPages
  #snapshotChars: number
  #tailChars: number
  #chars: number
  /** A model call that has started: it is stored in one line with its end, or alone with the next write. */
  #begun: Extract<RecordEntry, { type: 'begin' }> | undefined
  #lines: string[] = []
  #head: JsonObject
  #newHead: JsonObject | undefined
  #newPages: PagesChange | undefined
  #events: StoredEvent[] = []
  #eventSeq: number
  #eventTimer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #failure: Error | undefined
  #isScheduled = false

  constructor(writer: SessionWriter, loaded: LoadedSession) {
    this.#writer = writer
    this.#reader = loaded.reader.clone()
    this.#encoder = new LineEncoder(loaded.end)
    this.#lastLine = loaded.lastLine
    this.#pages = loaded.pages
    this.#snapshotChars = loaded.snapshotChars
    this.#tailChars = loaded.tailChars
    this.#chars = loaded.chars
    this.#head = writer.head
    this.#eventSeq = writer.eventSeq
  }

  /** The session with everything that was appended; undefined if not all of it is stored. */
  get loaded(): LoadedSession | undefined {
    const isStored = this.#lines.length === 0 && this.#begun === undefined && this.#writing === undefined
    if (!isStored || this.#failure !== undefined) return undefined
    return {
      reader: this.#reader,
      end: this.#encoder.end,
      lastLine: this.#lastLine,
      pages: this.#pages,
      snapshotChars: this.#snapshotChars,
      tailChars: this.#tailChars,
      chars: this.#chars,
    }
  }

  append(record: SessionRecord): void {
    const begun = this.#begun
    this.#begun = undefined
    if (begun !== undefined && record.type === 'end' && record.key === begun.key) {
      this.#push(encodeCall(begun, record, this.#reader))
      this.#reader.add(begun)
      return this.#reader.add(record)
    }
    if (begun !== undefined) this.#appendNow(begun)
    if (record.type === 'begin' && record.kind === 'inference') this.#begun = record
    else this.#appendNow(record)
  }

  /** Appends how a state differs from the last one that was stored. */
  appendState(state: AgentState, { ledger = [], ...rest }: Omit<StateRecord, 'type' | 'diff'>): void {
    if (this.#begun !== undefined) this.#appendNow(this.#begun)
    this.#begun = undefined
    const diff = diffState(this.#reader.state, state)
    const record: StateRecord = { type: 'state', ...rest, diff, ...(ledger.length > 0 && { ledger }) }
    this.#push(encodeRecord(record, this.#reader))
    this.#reader.add(record, state)
    const isCheap = state.messages.length % List.chunkLength < MAX_LEFT_OVER
    const enough = Math.max(SNAPSHOT_CHARS, 2 * this.#snapshotChars)
    if (this.#tailChars > (isCheap ? 1 : 4) * enough) this.#takeSnapshot()
  }

  /** The number of the last event. */
  get eventSeq(): number {
    return this.#eventSeq
  }

  nextEventSeq(): number {
    return ++this.#eventSeq
  }

  /** Adds the event with the next number. It is stored with the lines before it, or soon. */
  addEvent(event: StoredEvent): void {
    this.#events.push(event)
    this.#eventTimer ??= setTimeout(() => this.#flushEvents(), EVENTS_MS).unref()
  }

  /** How many entries of the ledger of the current run are stored. */
  get ledgerLength(): number {
    return this.#reader.ledger.length
  }

  /** Sets what lists show of the session. It is stored with the next lines. */
  setHead(head: JsonObject): void {
    const { snapshot } = this.#head
    this.#head = snapshot === undefined ? head : { ...head, snapshot }
    this.#newHead = this.#head
  }

  /** One write at a time, in order. After a failure nothing is written, because a line would be missing. */
  flush(): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#writing !== undefined) return this.#writing.then(() => this.flush())
    if (this.#begun !== undefined) this.#appendNow(this.#begun)
    this.#begun = undefined
    const [lines, events, head, pages] = [this.#lines, this.#events, this.#newHead, this.#newPages]
    if (lines.length === 0 && events.length === 0 && head === undefined) return undefined
    this.#lines = []
    this.#events = []
    this.#newHead = this.#newPages = undefined
    try {
      const writing = this.#writer.append(lines, { head, pages, events })
      if (!isThenable(writing)) return undefined
      this.#writing = (this.time?.wait(writing, storeLimit) ?? Promise.resolve(writing)).then(
        () => void (this.#writing = undefined),
        (thrown: unknown) => this.#fail(thrown),
      )
      return this.#writing
    } catch (thrown) {
      return this.#fail(thrown)
    }
  }

  flushSoon(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#tryFlush()
    })
  }

  /** Stores the events that wait. Call it before the session is released. */
  async close(): Promise<void> {
    clearTimeout(this.#eventTimer)
    if (this.#events.length > 0 && this.#failure === undefined) await this.flush()
  }

  /** The same after a failure: lines that wait are not stored, and neither are the events after them. */
  async abandon(): Promise<void> {
    const hasLines = this.#lines.length > 0 || this.#begun !== undefined || this.#newHead !== undefined
    if (hasLines || this.#encoder.end.seq < 0) this.#events = []
    await this.close().catch(() => undefined)
  }

  #flushEvents(): void {
    this.#eventTimer = undefined
    if (this.#events.length === 0) return
    if (this.#writing === undefined) this.#tryFlush()
    else this.#eventTimer = setTimeout(() => this.#flushEvents(), EVENTS_MS).unref()
  }

  #tryFlush(): void {
    try {
      this.flush()?.catch(() => undefined)
    } catch {
      // the next flush reports it
    }
  }

  #appendNow(record: SessionRecord): void {
    this.#push(encodeRecord(record, this.#reader))
    this.#reader.add(record)
  }

  #push(record: JsonObject): void {
    const line = this.#encoder.encode(record)
    this.#lines.push(line)
    this.#lastLine = line
    this.#tailChars += line.length
    this.#chars += line.length
  }

  #takeSnapshot(): void {
    if (this.#newPages !== undefined) return // one per write
    const { seq, sum } = this.#encoder.end
    const { record, change, pages } = takeSnapshot(this.#reader, this.#pages)
    this.#push(record)
    this.#reader.add(record)
    this.#snapshotChars = this.#lastLine.length
    this.#tailChars = 0
    this.#pages = pages
    this.#newPages = change
    this.#head = { ...this.#head, snapshot: { line: seq + 1, sum } }
    this.#newHead = this.#head
  }

  #fail(thrown: unknown): never {
    this.#writing = undefined
    this.#failure = storeFailed('The session cannot be stored', thrown)
    throw this.#failure
  }
}
