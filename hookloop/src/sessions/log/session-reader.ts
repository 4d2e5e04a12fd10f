import type { AgentState } from '../../state/agent-state.ts'
import type { EmittedEvent } from '../../state/event.ts'
import type { FinalRecord } from '../../state/execution.ts'
import { hashText } from '../../state/json.ts'
import { fromStateJson } from '../../state/saved-run.ts'
import { applyDiff } from '../../state/state-diff.ts'
import { decodeChange } from '../../effects/change.ts'
import { RunLog } from '../../effects/log.ts'
import type { RunRecord } from '../../effects/records.ts'
import { readEvent } from './record-events.ts'
import type { NumberedRecord, SessionRecord, SessionStart, SnapshotRecord, Turns } from './session-records.ts'

/** What the records of a session amount to, one record after the other. */
export class SessionReader {
  start: SessionStart | undefined
  /** The state between two runs, or at the last checkpoint of the open one. */
  state: AgentState | undefined
  /** The latest run. */
  log = new RunLog()
  isSuspended = false
  /** Whether the session ever had a message. */
  hasInput = false
  /** The number of runs. */
  runs = 0
  turns: Turns = noTurns
  /** The id of the latest run. */
  run = ''
  /** What was recorded of events since the last checkpoint. */
  events: EmittedEvent[] = []
  /** The number of the line of the last checkpoint, or of the input. */
  checkpoint = 0
  /** The time of the last record. */
  at = 0

  /** The run that has not ended, if there is one. */
  get open(): RunLog | undefined {
    return this.log.input === undefined || this.log.isOver ? undefined : this.log
  }

  /** Follows a record that is read. */
  add(record: NumberedRecord): void {
    if (record.t === 'input') this.beginRun()
    if (isOfRun(record)) {
      this.log.apply(record)
      if (this.log.root.state !== undefined) this.state = this.log.root.state
    }
    this.follow(record, record.seq)
  }

  /** Follows a record that this process has made. Those of a run are in its log already. */
  follow(record: SessionRecord, line: number): void {
    this.at = record.at
    const isCheckpoint = record.t === 'step' && record.path === undefined
    if (isCheckpoint || record.t === 'input' || record.t === 'final' || record.t === 'rewound') {
      this.events = []
      this.checkpoint = line
    }
    switch (record.t) {
      case 'session':
        this.start = record
        return
      case 'input':
        this.hasInput = true
        this.run = record.run
        this.runs++
        this.turns = addTurn(this.turns, record.turn)
        return
      case 'final':
        // Nothing ran, so the turn can be sent again, unless it was cancelled: it must not run then.
        if (record.final !== undefined) this.turns = withoutLatest(this.turns, record.final)
        return
      case 'state':
        this.state = applyDiff(this.state, decodeChange(record.change, nothingRecorded))
        return
      case 'suspended':
      case 'continued':
        this.isSuspended = record.t === 'suspended'
        return
      case 'event':
        this.events.push(readEvent(record, this.log))
        return
      case 'rewound':
        this.log.isOver = true
        this.state = applyDiff(this.state, decodeChange(record.change, nothingRecorded))
        return
      case 'snapshot':
        return this.#restore(record)
      default:
    }
  }

  /** A run starts from the current state. Its input is the next record. */
  beginRun(): RunLog {
    this.log = new RunLog()
    this.log.root.state = this.state
    return this.log
  }

  snapshot(): SnapshotRecord {
    const { log, start, state, run, isSuspended, hasInput, runs, turns, at, open } = this
    const { input, hooks, root, waits } = log
    return {
      t: 'snapshot',
      at,
      start: start!,
      state: state!.toJSON(),
      ...(open !== undefined && { open: { input: input!, hooks, since: root.at, waits } }),
      run,
      ledger: log.ledger,
      isSuspended,
      hasInput,
      runs,
      turns,
    }
  }

  #restore({ start, state, open, run = '', ledger, isSuspended, hasInput, runs, turns }: SnapshotRecord): void {
    if (this.start !== undefined) return // all records before it were read
    this.start = start
    this.state = fromStateJson(state)
    const log = this.beginRun()
    if (open !== undefined) {
      log.apply(open.input)
      log.hooks = open.hooks
      log.root.at = open.since
      log.waits = open.waits
    }
    log.ledger = [...ledger]
    Object.assign(this, { run, isSuspended, hasInput, runs, turns })
  }
}

const nothingRecorded = { keyOf: () => undefined, valueOf: () => undefined }
const ofRun: ReadonlySet<string> = new Set<RunRecord['t']>([
  'input',
  'begin',
  'end',
  'answer',
  'cancel',
  'pause',
  'resume',
  'step',
  'final',
])

export function isOfRun(record: SessionRecord): record is RunRecord {
  return ofRun.has(record.t)
}

const noTurns: Turns = Object.freeze({ known: [] })
const MAX_KNOWN_TURNS = 256

/** A bounded number of short hashes, because every snapshot has them. */
export function hashTurn(turn: string): string {
  return hashText(turn).slice(0, 16)
}

function addTurn({ known }: Turns, turn: string | undefined): Turns {
  return turn === undefined ? { known } : { latest: turn, known: [...known.slice(1 - MAX_KNOWN_TURNS), hashTurn(turn)] }
}

function withoutLatest({ latest, known }: Turns, final: FinalRecord): Turns {
  return latest === undefined || final.status === 'cancelled' ? { known } : { known: known.slice(0, -1) }
}

/** The state after some records of a session. */
export function stateOf(records: readonly NumberedRecord[]): AgentState | undefined {
  const reader = new SessionReader()
  for (const record of records) reader.add(record)
  return reader.state
}
