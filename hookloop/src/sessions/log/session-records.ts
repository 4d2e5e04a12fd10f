import { isJsonObject, type JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../../core/state/ledger.ts'
import {
  boolean,
  listOf,
  must,
  number,
  object,
  oneOf,
  optional,
  shapeOf,
  string,
  type Shape,
} from '../../values/shape.ts'
import type { FinalRecord } from '../../core/state/execution.ts'
import type { StateDiff } from '../../core/state/state-diff.ts'
import { openRunShape, runRecordShapes, time, type RunRecord } from '../../core/effects/records.ts'
import type { OpenRun } from '../../core/effects/save-run.ts'
import { AgentError } from '../../errors.ts'
import { corruptLine } from './session-log.ts'

export const SESSION_VERSION = 4

/** The first record of a session. */
export type SessionStart = {
  readonly t: 'session'
  readonly version: number
  readonly id: string
  readonly at: number
  readonly agent: string
  /** The session it was forked from, and the line there. */
  readonly from?: { readonly id: string; readonly seq: number }
}

/** What the records so far amount to, so that they need not be read again. */
export type SnapshotRecord = {
  readonly t: 'snapshot'
  readonly at: number
  readonly start: SessionStart
  readonly state: JsonObject
  /** The run that has not ended. */
  readonly open?: OpenRun
  /** The latest run, and its ledger. */
  readonly run?: string
  readonly ledger: readonly TimedLedgerEntry[]
  readonly isSuspended: boolean
  readonly runs: number
  readonly turns: Turns
}

/** The turns of a session: the one of the latest input, if it has one, and hashes of all. */
export type Turns = { readonly latest?: string; readonly known: readonly string[] }

/** What hooks did between two runs: when the session started or ended. */
export type HooksRecord = {
  readonly t: 'hooks'
  readonly at: number
  /** The run that follows, that is open, or that was last. */
  readonly run: string
  readonly ledger: readonly TimedLedgerEntry[]
}

export type RewoundRecord = {
  readonly t: 'rewound'
  readonly to: number
  readonly at: number
  /** The last step of the run that was open or last. */
  readonly step: number
  readonly change: StateDiff
  /** The runs that are not part of the conversation any more. */
  readonly runs: readonly string[]
}

/** The records of a session, one per line. */
export type SessionRecord =
  | SessionStart
  | RunRecord
  /** A change of the state between two runs. */
  | { readonly t: 'state'; readonly at: number; readonly change: StateDiff }
  /** The user has suspended or resumed the session. */
  | { readonly t: 'suspended'; readonly at: number; readonly reason?: string }
  | { readonly t: 'continued'; readonly at: number }
  /** The session goes back to a line: the change leads to the state there. A run that is open ends. */
  | RewoundRecord
  | HooksRecord
  | SnapshotRecord

/** How a run ended that was open when its session was rewound. */
export function rewoundAt(at: number): FinalRecord {
  const message = 'The session was rewound.'
  return Object.freeze({ status: 'stopped', reason: 'userRequested', by: 'rewind', message, votes: [], at })
}

export function isOfRun(record: SessionRecord): record is RunRecord {
  return Object.hasOwn(runRecordShapes, record.t)
}

/** A record and the number of its line. */
export type NumberedRecord = SessionRecord & { readonly seq: number }

/** Throws STATE_VERSION if a session has another version. It reads the first line only, before any other check. */
export function checkVersion(line: string | undefined): void {
  let first: unknown
  try {
    first = JSON.parse(line ?? '')
  } catch {
    return // reported when the lines are read
  }
  if (!isJsonObject(first) || (first['t'] !== 'session' && first['type'] !== 'session')) return
  const version = first['version']
  if (typeof version !== 'number' || version === SESSION_VERSION) return
  throw new AgentError(
    'STATE_VERSION',
    `The session has version ${version}; this Hookloop reads version ${SESSION_VERSION}.`,
    { value: version },
  )
}

/** Checks a record. Throws SESSION_CORRUPT. */
export function toRecord(value: JsonObject, seq: number): SessionRecord {
  const problem = problemOf(value, seq)
  if (problem === undefined) return value as unknown as SessionRecord
  throw corruptLine(seq, problem)
}

const onlyTime = shapeOf({ at: time })
const start = shapeOf({ id: string, agent: string, at: time, version: oneOf(SESSION_VERSION) })
const shapes: { readonly [t in SessionRecord['t']]: Shape } = {
  ...runRecordShapes,
  session: start,
  state: shapeOf({ at: time, change: object }),
  suspended: onlyTime,
  continued: onlyTime,
  rewound: shapeOf({ at: time, to: number, step: number, change: object, runs: listOf(string) }),
  hooks: shapeOf({
    at: time,
    run: string,
    ledger: listOf(shapeOf({ step: number, warnings: optional(listOf(object)) })),
  }),
  snapshot: shapeOf({
    at: time,
    start,
    state: object,
    open: optional(openRunShape),
    run: optional(string),
    ledger: listOf(object),
    isSuspended: boolean,
    runs: number,
    turns: shapeOf({ latest: optional(string), known: must(Array.isArray, 'must be an array') }),
  }),
}

function problemOf(record: JsonObject, seq: number): string | undefined {
  const { t } = record
  if ((t === 'session') !== (seq === 0)) return 'the first record, and only the first, must be of the kind "session"'
  if (typeof t !== 'string' || !Object.hasOwn(shapes, t)) return `its kind is ${JSON.stringify(t) ?? 'missing'}`
  return shapes[t as SessionRecord['t']](record, '')
}
