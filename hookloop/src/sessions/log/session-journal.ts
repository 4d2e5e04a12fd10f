import type { AgentState } from '../../core/state/agent-state.ts'
import type { JsonObject } from '../../values/json.ts'
import { diffState } from '../../core/state/state-diff.ts'
import type { RunTime, WorkLimit } from '../../core/effects/run-time.ts'
import { AgentError } from '../../errors.ts'
import { isThenable } from '../../values/thenable.ts'
import { storeFailed, type Piece, type SessionWriter } from '../stores/store.ts'
import { endInHead } from './read-session.ts'
import type { SessionReader } from './session-reader.ts'
import type { RewoundRecord, SessionRecord } from './session-records.ts'

/** A snapshot is taken when so many characters of lines have come since the last one, or twice as many as it had. */
const SNAPSHOT_CHARS = 65_536
/** How long events wait for each other: an answer has hundreds of pieces. */
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
export class SessionJournal {
  /** The time of the run that writes. */
  time: RunTime | undefined
  readonly reader: SessionReader
  readonly #writer: SessionWriter
  #lines: string[] = []
  #head: JsonObject
  #isNewHead = false
  #pieces: Piece[] = []
  #startsTurn = false
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #failure: Error | undefined
  #isScheduled = false

  constructor(writer: SessionWriter, reader: SessionReader) {
    this.#writer = writer
    this.reader = reader
    this.#head = writer.head
  }

  /** Whether all that was appended is stored. */
  get isStored(): boolean {
    return this.#lines.length === 0 && this.#writing === undefined && this.#failure === undefined
  }

  /** The number of the last line. */
  get seq(): number {
    return this.reader.end.seq
  }

  /** Appends a record. The log of a run follows its own records. */
  append(record: SessionRecord): void {
    if (record.t === 'input') this.#startsTurn = true
    this.#lines.push(this.reader.append(record))
  }

  /** Appends a state that was changed between two runs. */
  appendState(state: AgentState, at: number): void {
    const change = diffState(this.reader.state, state) as unknown as JsonObject
    this.append({ t: 'state', at, change })
    this.reader.state = state
    this.takeSnapshotIfDue()
  }

  /** Appends that the session goes back to a line, with the state there. */
  appendRewound(state: AgentState, rewound: Omit<RewoundRecord, 't' | 'change'>): void {
    const change = diffState(this.reader.state, state) as unknown as JsonObject
    this.append({ t: 'rewound', ...rewound, change })
    this.reader.state = state
  }

  /** Between two steps: a snapshot keeps reading as fast as it is, however long the session is. */
  takeSnapshotIfDue(): void {
    const { state, tailChars, snapshotChars, end } = this.reader
    if (state === undefined || tailChars < Math.max(SNAPSHOT_CHARS, 2 * snapshotChars)) return
    this.append(this.reader.snapshot())
    this.#head = { ...this.#head, snapshot: { line: end.seq + 1, sum: end.sum } }
  }

  /** Adds a piece. It is stored with the next lines, or soon. */
  addPiece(piece: Piece): void {
    this.#pieces.push(piece)
    this.flushLater()
  }

  /** Stores everything within a moment. */
  flushLater(): void {
    this.#timer ??= setTimeout(() => this.#flushNow(), EVENTS_MS).unref()
  }

  /** Sets what lists show of the session. It is stored with the next lines. */
  setHead(head: JsonObject): void {
    const { snapshot } = this.#head
    this.#head = snapshot === undefined ? head : { ...head, snapshot }
    this.#isNewHead = true
  }

  /** One write at a time, in order. After a failure nothing is written, because a line would be missing. */
  flush(): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#writing !== undefined) return this.#writing.then(() => this.flush())
    const [lines, pieces, startsTurn] = [this.#lines, this.#pieces, this.#startsTurn]
    const hasNews = lines.length > 0 || this.#isNewHead
    if (!hasNews && pieces.length === 0) return undefined
    // With its last line, so that it is noticed if lines are removed at the end.
    const head = hasNews ? { ...this.#head, end: endInHead(this.reader.end) } : undefined
    this.#lines = []
    this.#pieces = []
    this.#isNewHead = false
    this.#startsTurn = false
    try {
      const writing = this.#writer.append(lines, { head, pieces, startsTurn })
      if (!isThenable(writing)) return undefined
      const storing = Promise.resolve(writing) // a store may have promises of its own
      this.#writing = (this.time?.wait(storing, storeLimit) ?? storing).then(
        () => void (this.#writing = undefined),
        (thrown: unknown) => this.#fail(thrown),
      )
      return this.#writing
    } catch (thrown) {
      return this.#fail(thrown)
    }
  }

  /** Throws if a write has failed. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  flushSoon(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#tryFlush()
    })
  }

  /** Stores what waits. Call it before the session is released. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    if (this.#failure === undefined) await this.flush()
  }

  /** After a failure, lines and pieces that wait are not stored. */
  abandon(): void {
    clearTimeout(this.#timer)
    this.#failure ??= storeFailed('The session cannot be stored', 'the run has failed')
  }

  #flushNow(): void {
    this.#timer = undefined
    if (this.#writing === undefined) this.#tryFlush()
    else this.flushLater()
  }

  #tryFlush(): void {
    try {
      this.flush()?.catch(() => undefined)
    } catch {
      // the next flush reports it
    }
  }

  #fail(thrown: unknown): never {
    this.#writing = undefined
    this.#failure = storeFailed('The session cannot be stored', thrown)
    throw this.#failure
  }
}
