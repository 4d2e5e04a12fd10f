import type { AgentState } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import { diffState } from '../../state/state-diff.ts'
import type { RunTime, WorkLimit } from '../../effects/run-time.ts'
import { AgentError } from '../../errors.ts'
import { isThenable } from '../../state/thenable.ts'
import { storeFailed, type Piece, type SessionWriter } from '../stores/store.ts'
import type { LoadedSession } from './read-session.ts'
import { LineEncoder } from './session-log.ts'
import type { SessionReader } from './session-reader.ts'
import type { RewoundRecord, SessionRecord } from './session-records.ts'

/** A snapshot is taken when so many characters of lines have come since the last one, or as many as it had. */
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
  readonly #encoder: LineEncoder
  #lastLine: string
  #snapshotChars: number
  #tailChars: number
  #chars: number
  #lines: string[] = []
  #head: JsonObject
  #newHead: JsonObject | undefined
  #pieces: Piece[] = []
  #startsTurn = false
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #failure: Error | undefined
  #isScheduled = false

  constructor(writer: SessionWriter, loaded: LoadedSession) {
    this.#writer = writer
    this.reader = loaded.reader
    this.#encoder = new LineEncoder(loaded.end)
    this.#lastLine = loaded.lastLine
    this.#snapshotChars = loaded.snapshotChars
    this.#tailChars = loaded.tailChars
    this.#chars = loaded.chars
    this.#head = writer.head
  }

  /** The session with everything that was appended; undefined if not all of it is stored. */
  get loaded(): LoadedSession | undefined {
    const isStored = this.#lines.length === 0 && this.#writing === undefined
    if (!isStored || this.#failure !== undefined) return undefined
    return {
      reader: this.reader,
      end: this.#encoder.end,
      lastLine: this.#lastLine,
      snapshotChars: this.#snapshotChars,
      tailChars: this.#tailChars,
      chars: this.#chars,
    }
  }

  /** The number of the last line. */
  get seq(): number {
    return this.#encoder.end.seq
  }

  /** Appends a record. The log of a run follows its own records. */
  append(record: SessionRecord): void {
    if (record.t === 'input') this.#startsTurn = true
    this.#push(record)
    this.reader.follow(record, this.seq)
  }

  /** Appends a state that was changed between two runs. */
  appendState(state: AgentState, at: number): void {
    const change = diffState(this.reader.state, state) as unknown as JsonObject
    this.#push({ t: 'state', at, change })
    this.reader.at = at
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
    if (this.#tailChars < Math.max(SNAPSHOT_CHARS, this.#snapshotChars)) return
    if (this.reader.state === undefined) return
    const { seq, sum } = this.#encoder.end
    this.#push(this.reader.snapshot())
    this.#snapshotChars = this.#lastLine.length
    this.#tailChars = 0
    this.#head = { ...this.#head, snapshot: { line: seq + 1, sum } }
    this.#newHead = this.#head
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
    this.#newHead = this.#head
  }

  /** One write at a time, in order. After a failure nothing is written, because a line would be missing. */
  flush(): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#writing !== undefined) return this.#writing.then(() => this.flush())
    const [lines, pieces, head, startsTurn] = [this.#lines, this.#pieces, this.#newHead, this.#startsTurn]
    if (lines.length === 0 && pieces.length === 0 && head === undefined) return undefined
    this.#lines = []
    this.#pieces = []
    this.#newHead = undefined
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

  #push(record: SessionRecord): void {
    const line = this.#encoder.encode(record as unknown as JsonObject)
    this.#lines.push(line)
    this.#lastLine = line
    this.#tailChars += line.length
    this.#chars += line.length
  }

  #fail(thrown: unknown): never {
    this.#writing = undefined
    this.#failure = storeFailed('The session cannot be stored', thrown)
    throw this.#failure
  }
}
