import type { Answer, Answers } from '../../state/tool-call.ts'
import type { FinalRecord } from '../../state/execution.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { fromLedgerRow, isLedgerRow, type LedgerRow, type TimedLedgerEntry } from '../../state/ledger.ts'
import { isMessage, type Message } from '../../state/message.ts'
import {
  boolean,
  must,
  number,
  object,
  oneOf,
  optional,
  present,
  shapeOf,
  string,
  type Shape,
} from '../../state/shape.ts'
import type { RunLimits } from '../../state/stored-run.ts'
import type { StateDiff } from '../../state/state-diff.ts'
import { AgentError, clause } from '../../errors.ts'
import type { Checkpoint } from '../../effects/effects.ts'
import { problemOfEntry, type RecordEntry } from '../../effects/recording.ts'

/** Version 1 repeated in each checkpoint what follows from the calls. It is still read. */
export const SESSION_VERSION = 2

/** Where a process started or resumed a run. Missing in records of version 0.1, and where a fork prepares a run. */
export type Circumstances = {
  readonly cwd?: string
  /** The limits in force. */
  readonly limits?: RunLimits
}

/** The records of a session, one per line. The effects of a run are recorded as in any other recording. */
export type SessionRecord =
  | {
      readonly type: 'session'
      readonly version: number
      readonly id: string
      readonly at: number
      readonly agent: string
      /** The session it was forked from, and the line there. */
      readonly from?: { readonly id: string; readonly seq: number }
    }
  /** A run starts: its input, and the id that its other ids are made from. */
  | (Circumstances & {
      readonly type: 'input'
      readonly run: string
      readonly at: number
      readonly message: Message
      readonly metadata?: JsonObject
      /** The id that the caller gave it, so that the same request does not run twice. */
      readonly turn?: string
      /** The agent, if it is another one than that of the session. */
      readonly agent?: string
      /** Whether model calls are stored with their requests. */
      readonly requests?: true
    })
  | Exclude<RecordEntry, { type: 'run' }>
  /** A checkpoint of a run, or a change between two runs: what changed in the state since the last one. */
  | {
      readonly type: 'state'
      readonly phase: Checkpoint['phase'] | 'changed'
      readonly at: number
      readonly diff: StateDiff
      /** Why a run ended without an execution, which would have it. Missing in records of version 0.1. */
      readonly final?: FinalRecord
      readonly ledger?: readonly (TimedLedgerEntry | LedgerRow)[]
    }
  /** An approver has answered, in this process or in another one. */
  | {
      readonly type: 'answer'
      readonly approval: string
      readonly answer: Answer
      readonly at: number
      readonly by?: string
    }
  /** The run resumes with these answers. With `ends`, it ends after the step, because there is new input. */
  | (Circumstances & {
      readonly type: 'answers'
      readonly answers: Answers
      readonly at: number
      readonly ends?: true
    })
  /** The user has suspended or resumed the session. */
  | { readonly type: 'sessionSuspended'; readonly at: number; readonly reason?: string }
  | { readonly type: 'sessionResumed'; readonly at: number }
  /** Another process resumes a run that was interrupted. */
  | (Circumstances & { readonly type: 'runResumed'; readonly at: number })
  /** The session goes back to a line. The state record after it has the state there. */
  | { readonly type: 'rewound'; readonly to: number; readonly at: number }
  /** The open step is closed with what is recorded: the agent has changed or, with `ends`, there is new input. */
  | { readonly type: 'stepClosing'; readonly at: number; readonly ends?: true }
  /** What the records so far amount to, so that they need not be read again. See `session-snapshot.ts`. */
  | SnapshotRecord

/** A record and the number of its line. */
export type NumberedRecord = SessionRecord & { readonly seq: number }

export type SnapshotRecord = {
  readonly type: 'snapshot'
  readonly at: number
  readonly start: JsonObject
  readonly state: JsonObject
  readonly pages: JsonObject
  readonly open?: JsonObject
  readonly isSuspended: boolean
  readonly hasInput: boolean
  /** The number of runs. Missing in snapshots of version 0.1. */
  readonly runs?: number
  readonly turns?: Turns
}

/** The turns of a session: the one of the latest input, if it has one, and hashes of the last ones. */
export type Turns = { readonly latest?: string; readonly known: readonly string[] }

export type StateRecord = Extract<SessionRecord, { type: 'state' }>

/** Throws STATE_VERSION if a session has a newer version. It reads the first line only, before any other check. */
export function checkVersion(line: string | undefined): void {
  let first: unknown
  try {
    first = JSON.parse(line ?? '')
  } catch {
    return // reported when the lines are read
  }
  const version = isJsonObject(first) && first['type'] === 'session' ? first['version'] : undefined
  if (typeof version !== 'number' || version <= SESSION_VERSION) return
  throw new AgentError(
    'STATE_VERSION',
    `The session has version ${version}; this Hookloop reads up to ${SESSION_VERSION}. Use a newer one.`,
    { value: version },
  )
}

/** Checks a record. Throws SESSION_CORRUPT. */
export function toRecord(value: JsonObject, seq: number): SessionRecord {
  const problem = problemOf(value, seq)
  if (problem === undefined) return value as unknown as SessionRecord
  throw new AgentError('SESSION_CORRUPT', `Line ${seq + 1} of the session cannot be read: ${clause(problem)}.`, {
    value: seq,
  })
}

const MAX_DATE_MS = 8.64e15
const time = must((at) => typeof at === 'number' && at >= 0 && at <= MAX_DATE_MS, 'must be a time in milliseconds')
const ledger = must(
  (value) => Array.isArray(value) && value.every((entry) => isJsonObject(entry) || isLedgerRow(entry)),
  'must be an array of ledger entries',
)
const onlyTime = shapeOf({ at: time })
const circumstances = { cwd: optional(string), limits: optional(object) }
const shapes = new Map<unknown, Shape>([
  ['session', shapeOf({ id: string, agent: string, at: time, version: oneOf(1, SESSION_VERSION) })],
  [
    'input',
    shapeOf({
      message: must(isMessage, 'must be a message'),
      run: string,
      at: time,
      metadata: optional(object),
      turn: optional(string),
      agent: optional(string),
      ...circumstances,
    }),
  ],
  [
    'state',
    shapeOf({
      phase: oneOf('inputBlocked', 'started', 'step', 'suspended', 'ended', 'changed'),
      at: time,
      diff: object,
      final: optional(object),
      ledger: optional(ledger),
    }),
  ],
  ['answer', shapeOf({ approval: string, at: time, answer: present })],
  ['answers', shapeOf({ answers: object, at: time, ...circumstances })],
  ['sessionSuspended', onlyTime],
  ['sessionResumed', onlyTime],
  ['runResumed', shapeOf({ at: time, ...circumstances })],
  ['stepClosing', onlyTime],
  ['rewound', shapeOf({ at: time, to: number })],
  [
    'snapshot',
    shapeOf({
      at: time,
      start: object,
      state: object,
      pages: object,
      open: optional(object),
      isSuspended: boolean,
      hasInput: boolean,
      runs: optional(number),
      turns: optional(shapeOf({ latest: optional(string), known: must(Array.isArray, 'must be an array') })),
    }),
  ],
])

function problemOf(record: JsonObject, seq: number): string | undefined {
  const { type, at } = record
  if ((type === 'session') !== (seq === 0)) return 'the first record, and only the first, must be of type "session"'
  if (type === 'run') return 'a run in a session starts with its input'
  const shape = shapes.get(type)
  return shape === undefined ? (optional(time)(at, 'at') ?? problemOfEntry(record)) : shape(record, '')
}

/** The state changes in records, for `buildState`. */
export function diffsIn(records: readonly SessionRecord[]): readonly StateDiff[] {
  return records.flatMap((record) => (record.type === 'state' ? [record.diff] : []))
}

/** The entries of a stored ledger. */
export function toLedger(stored: readonly (TimedLedgerEntry | LedgerRow)[]): readonly TimedLedgerEntry[] {
  return stored.map((entry) => (isLedgerRow(entry) ? fromLedgerRow(entry) : entry))
}
