import type { AgentState } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import type { Message } from '../../state/message.ts'
import { StateBuilder } from '../../state/state-diff.ts'
import type { Answer, Answers } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { LogCache } from './log-cache.ts'
import { checkVersion, toLedger, type SessionRecord } from './session-records.ts'
import { sessionCorrupt } from '../stores/store.ts'

/** A run that has not ended: how far it was when its state was kept last, and what happened since. */
export type OpenRun = {
  readonly run: string
  readonly phase: 'input' | 'started' | 'step' | 'suspended'
  /** When something was last heard of it, and how long nobody worked on it before that, since its state was kept. */
  readonly at: number
  readonly downMs: number
  readonly input: Message
  readonly metadata: JsonObject | undefined
  readonly entries: readonly RecordEntry[]
  /** What persons have answered and the run has not gone on with. */
  readonly given: Answers
  /** What the run has gone on with, if it has. */
  readonly answers: Answers | undefined
}

/** What the lines of a session say. */
export type SessionSnapshot = {
  readonly records: readonly SessionRecord[]
  readonly end: { readonly seq: number; readonly sum: string }
  readonly state: AgentState | undefined
  /** Of the latest run. */
  readonly ledger: readonly TimedLedgerEntry[]
  readonly open: OpenRun | undefined
  /** Whether somebody has suspended it. */
  readonly isSuspended: boolean
}

/**
 * Reads the lines of a session: the state is put together from its patches, and what came after the last of them is left
 * open. Throws SESSION_CORRUPT, also when they are those of another id, or STATE_VERSION when they come from the future.
 */
export function readSession(lines: readonly string[], id?: string): SessionSnapshot {
  checkVersion(lines[0])
  const { records, end } = logs.read(lines)
  const own = records[0]?.type === 'session' ? records[0].id : ''
  if (id !== undefined && records.length > 0 && id !== own) throw sessionCorrupt(id, `its lines are those of "${own}"`)
  const reading = new Reading()
  try {
    for (const record of records) reading.take(record)
    const state = reading.state()
    const { ledger, open, isSuspended } = reading
    checkOpen(open, state)
    return { records, end, state, ledger, open, isSuspended }
  } catch (error) {
    if (error instanceof AgentError && error.code === 'STATE_INVALID') throw sessionCorrupt(own, error.message)
    throw error
  }
}

const logs = new LogCache()

/** A run that is to be gone on with must have got as far as its lines say. */
function checkOpen(open: OpenRun | undefined, state: AgentState | undefined): void {
  if (open === undefined || open.phase === 'input') return
  const status = open.phase === 'suspended' ? 'suspended' : 'running'
  if (state?.execution?.status === status) return
  throw new AgentError('STATE_INVALID', `the run is not ${status}, as it should be`)
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

class Reading {
  readonly #builder = new StateBuilder()
  #hasState = false
  ledger: TimedLedgerEntry[] = []
  open: Mutable<OpenRun> | undefined
  isSuspended = false
  #entries: RecordEntry[] = []

  take(record: SessionRecord): void {
    switch (record.type) {
      case 'session':
        return
      case 'input': {
        const { run, at, message, metadata } = record
        this.#entries = []
        this.ledger = []
        this.open = {
          run,
          at,
          downMs: 0,
          phase: 'input',
          input: message,
          metadata,
          entries: this.#entries,
          given: {},
          answers: undefined,
        }
        return
      }
      case 'state':
        return this.#takeState(record)
      case 'answer':
        if (this.open !== undefined)
          this.open.given = { ...this.open.given, [record.approval]: record.answer satisfies Answer }
        return
      case 'answers':
        if (this.open !== undefined) this.open.answers = record.answers
        return
      case 'sessionSuspended':
      case 'sessionResumed':
        this.isSuspended = record.type === 'sessionSuspended'
        return
      case 'runResumed':
        if (this.open === undefined) return
        this.open.downMs += Math.max(0, record.at - this.open.at)
        this.open.at = record.at
        return
      default:
        this.#entries.push(record)
        if (this.open !== undefined && 'at' in record) this.open.at = record.at
    }
  }

  state(): AgentState | undefined {
    return this.#hasState ? this.#builder.build() : undefined
  }

  #takeState({ phase, diff, ledger = [], at }: Extract<SessionRecord, { type: 'state' }>): void {
    this.#builder.apply(diff)
    this.#hasState = true
    for (const entry of toLedger(ledger)) this.ledger.push(entry)
    this.#entries = []
    if (phase === 'inputBlocked' || phase === 'ended' || phase === 'changed' || this.open === undefined)
      this.open = undefined
    else this.open = { ...this.open, phase, at, downMs: 0, entries: this.#entries, given: {}, answers: undefined }
  }
}
