import type { AgentState } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import type { Message } from '../../state/message.ts'
import { StateBuilder } from '../../state/state-diff.ts'
import type { Answers } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { LogCache } from './log-cache.ts'
import { checkVersion, toLedger, type SessionRecord } from './session-records.ts'
import { sessionCorrupt, sessionUnknown, type SessionStore } from '../stores/store.ts'

/** A run that has not ended: its last checkpoint, and what happened since. */
export type OpenRun = {
  readonly run: string
  readonly phase: 'input' | 'started' | 'step' | 'suspended'
  /** The time of its last record, and how long no process worked on it since the checkpoint. */
  readonly at: number
  readonly downMs: number
  readonly input: Message
  readonly metadata: JsonObject | undefined
  readonly entries: readonly RecordEntry[]
  /** Answers of approvers that the run has not resumed with. */
  readonly given: Answers
  /** The answers that the run has resumed with, if it has. */
  readonly answers: Answers | undefined
}

/** The content of a session at one point in time. */
export type SessionSnapshot = {
  readonly records: readonly SessionRecord[]
  readonly end: { readonly seq: number; readonly sum: string }
  /** The agent that started the session, and when. `createdAt` is undefined if the session is empty. */
  readonly agent: string
  readonly createdAt: number | undefined
  readonly state: AgentState | undefined
  /** Of the latest run. */
  readonly ledger: readonly TimedLedgerEntry[]
  readonly open: OpenRun | undefined
  /** Whether the user has suspended the session. */
  readonly isSuspended: boolean
}

/**
 * Reads the lines of a session: builds the state from its diffs, and collects what follows the last of them. Throws
 * SESSION_CORRUPT, also if the lines belong to another id, and STATE_VERSION if they are of a newer version.
 */
export function readSession(lines: readonly string[], id?: string): SessionSnapshot {
  checkVersion(lines[0])
  const { records, end } = cache.read(lines)
  const first = records[0]?.type === 'session' ? records[0] : undefined
  if (id !== undefined && first !== undefined && id !== first.id)
    throw sessionCorrupt(id, `its lines are those of the session "${first.id}"`)
  const reader = new Reader()
  try {
    for (const record of records) reader.add(record)
    const state = reader.state()
    const { ledger, open, isSuspended } = reader
    checkOpen(open, state)
    return { records, end, agent: first?.agent ?? 'agent', createdAt: first?.at, state, ledger, open, isSuspended }
  } catch (error) {
    if (error instanceof AgentError && error.code === 'STATE_INVALID')
      throw sessionCorrupt(first?.id ?? '', error.message)
    throw error
  }
}

const cache = new LogCache()

/** Reads a session from a store. Throws SESSION_UNKNOWN if it does not exist. */
export async function readStoredSession(store: SessionStore, id: string): Promise<SessionSnapshot> {
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  return readSession(stored.lines, id)
}

/** The status of an open run must fit its last checkpoint. */
function checkOpen(open: OpenRun | undefined, state: AgentState | undefined): void {
  if (open === undefined || open.phase === 'input') return
  const status = open.phase === 'suspended' ? 'suspended' : 'running'
  if (state?.execution?.status === status) return
  throw new AgentError('STATE_INVALID', `the run must be ${status} at its last checkpoint`)
}

class Reader {
  readonly #builder = new StateBuilder()
  #hasState = false
  ledger: TimedLedgerEntry[] = []
  open: { -readonly [K in keyof OpenRun]: OpenRun[K] } | undefined
  isSuspended = false
  #entries: RecordEntry[] = []

  add(record: SessionRecord): void {
    switch (record.type) {
      case 'session':
        return
      case 'input': {
        const { run, at, message: input, metadata } = record
        this.#entries = []
        this.ledger = []
        this.open = { run, at, input, metadata, phase: 'input', ...this.#sinceCheckpoint() }
        return
      }
      case 'state':
        return this.#addState(record)
      case 'answer':
        if (this.open !== undefined) this.open.given = { ...this.open.given, [record.approval]: record.answer }
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

  #addState({ phase, diff, ledger = [], at }: Extract<SessionRecord, { type: 'state' }>): void {
    this.#builder.apply(diff)
    this.#hasState = true
    for (const entry of toLedger(ledger)) this.ledger.push(entry)
    this.#entries = []
    const isOver = phase === 'inputBlocked' || phase === 'ended' || phase === 'changed'
    this.open = isOver || this.open === undefined ? undefined : { ...this.open, phase, at, ...this.#sinceCheckpoint() }
  }

  #sinceCheckpoint(): Pick<OpenRun, 'downMs' | 'entries' | 'given' | 'answers'> {
    return { downMs: 0, entries: this.#entries, given: {}, answers: undefined }
  }
}
