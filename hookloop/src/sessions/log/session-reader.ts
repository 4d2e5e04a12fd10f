import type { AgentState } from '../../core/state/agent-state.ts'
import type { FinalRecord } from '../../core/state/execution.ts'
import { hashText } from '../../values/json.ts'
import { fromStateJson } from '../../core/state/saved-run.ts'
import { applyDiff } from '../../core/state/state-diff.ts'
import { RunLog } from '../../core/effects/log.ts'
import { loadLog, openRun } from '../../core/effects/save-run.ts'
import { AgentError } from '../../errors.ts'
import { sessionCorrupt } from '../stores/store.ts'
import { RecordedRuns } from './recorded-run.ts'
import { References } from './references.ts'
import { decodeLine, encodeLine, noLine, type LineEnd } from './session-log.ts'
import {
  checkVersion,
  isOfRun,
  toRecord,
  type NumberedRecord,
  type SessionRecord,
  type SessionStart,
  type SnapshotRecord,
  type Turns,
} from './session-records.ts'

/**
 * The fold of the records of a session: what they amount to, one record after the other. It is what a process has of a session
 * in memory, to append to it, or to read only what was appended since.
 */
export class SessionReader {
  start: SessionStart | undefined
  /** The state between two runs, or at the last checkpoint of the open one. */
  state: AgentState | undefined
  /** The latest run. */
  log = new RunLog()
  /** Whether the user has suspended the session. */
  isSuspended = false
  /** How many runs it has had. */
  runs = 0
  turns: Turns = noTurns
  /** The id of the latest run. */
  run = ''
  /** The number of the line of the last checkpoint, or of the input. */
  checkpoint = 0
  /** The time of the last record. */
  at = 0
  /** Its last line. */
  end: LineEnd
  lastLine = ''
  /** The length of the last snapshot, of the lines after it, and of everything that was read. */
  snapshotChars = 0
  tailChars = 0
  chars = 0
  /** The runs that were read, with all their records, if they are collected. */
  readonly recorded = new RecordedRuns()
  readonly #id: string | undefined
  readonly #collects: boolean
  readonly #references = new References()

  /** `id`: the session that the lines must be of. `after`: the line that the first one follows. */
  constructor({ id, after = noLine, collects = false }: ReaderOptions = {}) {
    this.#id = id
    this.end = after
    this.#collects = collects
  }

  /** The agent that started the session, and when. `createdAt` is undefined if the session is empty. */
  get agent(): string {
    return this.start?.agent ?? 'agent'
  }

  get createdAt(): number | undefined {
    return this.start?.at
  }

  get isFork(): boolean {
    return this.start?.from !== undefined
  }

  /** The run that has not ended, if there is one. */
  get open(): RunLog | undefined {
    return this.log.input === undefined || this.log.isOver ? undefined : this.log
  }

  /** Reads lines that follow. Throws SESSION_CORRUPT, and STATE_VERSION if they are of another version. */
  read(lines: readonly string[]): void {
    for (const record of this.decode(lines)) this.add(record)
  }

  /** The records in lines that follow, one after the other. `add` each of them before the next one. */
  *decode(lines: readonly string[]): Generator<NumberedRecord> {
    if (this.end.seq < 0) checkVersion(lines[0])
    for (const line of lines) {
      const { record: value, end } = decodeLine(line, this.end)
      const record = toRecord(this.#references.read(value, line, end.seq), end.seq) as NumberedRecord
      this.#passed(record, line, end)
      yield record
    }
  }

  /** Follows a record that was read. */
  add(record: NumberedRecord): void {
    try {
      if (record.t === 'input') this.beginRun()
      if (isOfRun(record)) {
        this.log.apply(record)
        if (this.log.root.state !== undefined) this.state = this.log.root.state
      }
      this.#follow(record)
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'STATE_INVALID') throw error
      throw sessionCorrupt(this.#id ?? this.start?.id ?? '', error.message)
    }
    if (this.#collects) this.recorded.add(record, this)
  }

  /** Follows a record that this process makes, and returns its line. Those of a run are in its log already. */
  append(record: SessionRecord): string {
    const { line, end } = encodeLine(this.#references.write(record, this.end.seq + 1), this.end)
    this.#passed(record, line, end)
    if (record.t !== 'snapshot') this.#follow(record)
    return line
  }

  #passed({ t }: SessionRecord, line: string, end: LineEnd): void {
    this.end = end
    this.lastLine = line
    this.chars += line.length
    this.tailChars += line.length
    if (t !== 'snapshot') return
    this.snapshotChars = line.length
    this.tailChars = 0
  }

  #follow(record: SessionRecord): void {
    this.at = record.at
    const isCheckpoint = record.t === 'step' && record.path === undefined
    if (isCheckpoint || record.t === 'input' || record.t === 'final' || record.t === 'rewound')
      this.checkpoint = this.end.seq
    switch (record.t) {
      case 'session':
        this.#begin(record)
        return
      case 'input':
        this.run = record.run
        this.runs++
        this.turns = addTurn(this.turns, record.turn)
        return
      case 'final':
        // Nothing ran, so the turn can be sent again, unless it was cancelled: it must not run then.
        if (record.final !== undefined) this.turns = withoutLatest(this.turns, record.final)
        return
      case 'state':
        this.state = applyDiff(this.state, record.change)
        return
      case 'suspended':
      case 'continued':
        this.isSuspended = record.t === 'suspended'
        return
      case 'rewound':
        this.log.isOver = true
        this.state = applyDiff(this.state, record.change)
        return
      case 'snapshot':
        if (this.start === undefined) this.#restore(record) // otherwise all records before it were read
        return
      default:
    }
  }

  #begin(start: SessionStart): void {
    if (this.#id !== undefined && this.#id !== start.id)
      throw sessionCorrupt(this.#id, `its lines are those of the session "${start.id}"`)
    this.start = start
  }

  /** A run starts from the current state. Its input is the next record. */
  beginRun(): RunLog {
    this.log = new RunLog()
    this.log.root.state = this.state
    return this.log
  }

  snapshot(): SnapshotRecord {
    const { log, start, state, run, isSuspended, runs, turns, at, open } = this
    return {
      t: 'snapshot',
      at,
      start: start!,
      state: state!.toJSON(),
      ...(open !== undefined && { open: openRun(open) }),
      run,
      ledger: log.ledger,
      isSuspended,
      runs,
      turns,
    }
  }

  #restore({ start, state, open, run = '', ledger, isSuspended, runs, turns }: SnapshotRecord): void {
    this.#begin(start)
    this.state = fromStateJson(state)
    if (open === undefined) this.beginRun()
    else this.log = loadLog(open, this.state)
    this.log.ledger = [...ledger]
    Object.assign(this, { run, isSuspended, runs, turns, checkpoint: this.end.seq })
  }
}

type ReaderOptions = {
  readonly id?: string | undefined
  readonly after?: LineEnd
  readonly collects?: boolean
}

const noTurns: Turns = Object.freeze({ known: [] })
/** Short, because every snapshot has the hashes of all turns. */
export function hashTurn(turn: string): string {
  return hashText(turn).slice(0, 16)
}

function addTurn({ known }: Turns, turn: string | undefined): Turns {
  return turn === undefined ? { known } : { latest: turn, known: [...known, hashTurn(turn)] }
}

function withoutLatest({ latest, known }: Turns, final: FinalRecord): Turns {
  return latest === undefined || final.status === 'cancelled' ? { known } : { known: known.slice(0, -1) }
}
