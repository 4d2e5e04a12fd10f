import type { AgentState } from '../../state/agent-state.ts'
import type { FinalRecord } from '../../state/execution.ts'
import { hashText, type JsonObject } from '../../state/json.ts'
import type { LedgerRow, TimedLedgerEntry } from '../../state/ledger.ts'
import { List } from '../../state/list.ts'
import type { Message } from '../../state/message.ts'
import { applyDiff } from '../../state/state-diff.ts'
import type { Answers } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { newContext, type CodecContext } from './record-codec.ts'
import type { SessionRecord, StateRecord, Turns } from './session-records.ts'

/** A run that has not ended: its last checkpoint, and what happened since. */
export type OpenRun = {
  readonly run: string
  readonly phase: 'input' | 'started' | 'step' | 'suspended'
  /** The time of its last record, and how long no process worked on it since the checkpoint. */
  readonly at: number
  readonly downMs: number
  readonly input: Message
  readonly metadata: JsonObject | undefined
  readonly turn?: string | undefined
  /** Whether its model calls are stored with their requests. */
  readonly recordsRequests: boolean
  readonly entries: readonly RecordEntry[]
  /** Whether a process has begun to close the open step with the entries. */
  readonly isClosing: boolean
  /** Whether the run ends after the open step, because there is new input. */
  readonly ends: boolean
  /** Answers of approvers that the run has not resumed with. */
  readonly given: Answers
  /** The answers that the run has resumed with, if it has. */
  readonly answers: Answers | undefined
}

/** The first record of a session. */
export type SessionStart = Extract<SessionRecord, { type: 'session' }>

/**
 * What the records of a session amount to, one record after the other. A reader and the writer of a session both follow it,
 * so a record need not repeat what is known from the records before it.
 */
export class SessionReader {
  start: SessionStart | undefined
  state: AgentState | undefined
  /** Of the latest run. */
  ledger: List<TimedLedgerEntry | LedgerRow> = List.empty()
  open: Omit<OpenRun, 'entries' | 'at'> | undefined
  /** What happened since the last checkpoint. */
  entries: RecordEntry[] = []
  isSuspended = false
  /** Whether the session ever had a message. */
  hasInput = false
  /** The number of runs. Undefined after a snapshot of version 0.1. */
  runs: number | undefined = 0
  turns: Turns = noTurns
  /** The time of the last record that has one, and of the last one of the open run. */
  at = 0
  runAt = 0
  context: CodecContext = newContext()

  clone(): SessionReader {
    const copy = Object.assign(new SessionReader(), this)
    copy.entries = this.entries.slice()
    copy.context = { ...this.context, hooks: this.context.hooks.slice() }
    return copy
  }

  /** Follows a record. `state` is the state that its change leads to, if it is known. */
  add(record: SessionRecord, state?: AgentState): void {
    if ('at' in record) this.at = record.at
    switch (record.type) {
      case 'session':
        this.start = record
        return
      case 'input': {
        const { run, at, message: input, metadata, turn, requests = false } = record
        this.entries = []
        this.ledger = List.empty()
        this.hasInput = true
        if (this.runs !== undefined) this.runs++
        this.turns = addTurn(this.turns, record.turn)
        this.context = newContext()
        this.open = { run, input, metadata, turn, recordsRequests: requests, phase: 'input', ...sinceCheckpoint }
        this.runAt = at
        return
      }
      case 'state':
        return this.#addState(record, state)
      case 'answer':
        if (this.open !== undefined)
          this.open = { ...this.open, given: { ...this.open.given, [record.approval]: record.answer } }
        return
      case 'answers':
        if (this.open !== undefined)
          this.open = { ...this.open, answers: record.answers, ends: record.ends ?? this.open.ends }
        return
      case 'stepClosing':
        if (this.open !== undefined) this.open = { ...this.open, isClosing: true, ends: record.ends ?? this.open.ends }
        return
      case 'sessionSuspended':
      case 'sessionResumed':
        this.isSuspended = record.type === 'sessionSuspended'
        return
      case 'runResumed': {
        if (this.open === undefined) return
        this.open = { ...this.open, downMs: this.open.downMs + Math.max(0, record.at - this.runAt) }
        this.runAt = record.at
        return
      }
      case 'snapshot':
        this.context = { ...newContext(), request: this.context.request }
        return
      case 'rewound':
        return // the state follows
      default:
        this.entries.push(record)
        // Not that of a call that began: the clock of a run is the time of its last result.
        if ('at' in record && record.type !== 'begin') this.runAt = record.at
    }
  }

  /** The run that has not ended. Throws STATE_INVALID if its status does not fit its last checkpoint. */
  openRun(): OpenRun | undefined {
    if (this.open === undefined) return undefined
    const status = this.open.phase === 'suspended' ? 'suspended' : 'running'
    if (this.open.phase !== 'input' && this.state?.execution?.status !== status)
      throw new AgentError('STATE_INVALID', `the run must be ${status} at its last checkpoint`)
    return { ...this.open, at: this.runAt, entries: this.entries.slice() }
  }

  #addState({ phase, diff, ledger = [], at, final }: StateRecord, state?: AgentState): void {
    this.state = state ?? applyDiff(this.state, diff)
    if (ledger.length > 0) this.ledger = this.ledger.concat(ledger)
    this.runAt = at
    this.entries = []
    if (phase === 'inputBlocked') this.turns = withoutLatest(this.turns, final)
    const isOver = phase === 'inputBlocked' || phase === 'ended' || phase === 'changed'
    this.open = isOver || this.open === undefined ? undefined : { ...this.open, phase, ...sinceCheckpoint }
  }
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

/** Nothing ran, so the latest turn can be sent again, unless it was cancelled: it must not run then. */
function withoutLatest({ latest, known }: Turns, final: FinalRecord | undefined): Turns {
  return latest === undefined || final?.status === 'cancelled' ? { known } : { known: known.slice(0, -1) }
}

const sinceCheckpoint: Pick<OpenRun, 'downMs' | 'isClosing' | 'ends' | 'given' | 'answers'> = Object.freeze({
  downMs: 0,
  isClosing: false,
  ends: false,
  given: Object.freeze({}),
  answers: undefined,
})
