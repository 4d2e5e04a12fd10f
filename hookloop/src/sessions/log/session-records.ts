import type { Answer, Answers } from '../../state/tool-call.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { fromLedgerRow, isLedgerRow, type LedgerRow, type TimedLedgerEntry } from '../../state/ledger.ts'
import { isMessage, type Message } from '../../state/message.ts'
import { must, object, oneOf, optional, present, shapeOf, string, type Shape } from '../../state/shape.ts'
import type { StateDiff } from '../../state/state-diff.ts'
import { AgentError } from '../../errors.ts'
import type { Checkpoint } from '../../effects/effects.ts'
import { problemOfEntry, type RecordEntry } from '../../effects/recording.ts'

export const SESSION_VERSION = 1

/** Everything that is written down of a session, one line each. What happens in a run is recorded as in any recording. */
export type SessionRecord =
  | {
      readonly type: 'session'
      readonly version: number
      readonly id: string
      readonly at: number
      readonly agent: string
      /** Where it was forked from. */
      readonly from?: { readonly id: string; readonly seq: number }
    }
  /** A run begins: what was said, and the name its ids are made from. */
  | {
      readonly type: 'input'
      readonly run: string
      readonly at: number
      readonly message: Message
      readonly metadata?: JsonObject
    }
  | Exclude<RecordEntry, { type: 'run' }>
  /** Where the run can be gone on from, and what became of the state since the last such place. */
  | {
      readonly type: 'state'
      readonly phase: Checkpoint['phase'] | 'changed'
      readonly at: number
      readonly diff: StateDiff
      readonly ledger?: readonly (TimedLedgerEntry | LedgerRow)[]
    }
  /** A person has answered, here or from another process. */
  | {
      readonly type: 'answer'
      readonly approval: string
      readonly answer: Answer
      readonly at: number
      readonly by?: string
    }
  /** The run goes on with these answers. */
  | { readonly type: 'answers'; readonly answers: Answers; readonly at: number }
  /** Somebody has suspended the session, or lets it go on. */
  | { readonly type: 'sessionSuspended'; readonly at: number; readonly reason?: string }
  | { readonly type: 'sessionResumed'; readonly at: number }
  /** Another process has taken the run over. */
  | { readonly type: 'runResumed'; readonly at: number }

/** Throws STATE_VERSION for the first line of a session from the future, before anything else of it is looked at. */
export function checkVersion(line: string | undefined): void {
  let first: unknown
  try {
    first = JSON.parse(line ?? '')
  } catch {
    return // said when the lines are read
  }
  const version = isJsonObject(first) && first['type'] === 'session' ? first['version'] : undefined
  if (typeof version !== 'number' || version <= SESSION_VERSION) return
  throw new AgentError(
    'STATE_VERSION',
    `The session has version ${version}; this Hookloop reads up to ${SESSION_VERSION}. Use a newer one.`,
    { value: version },
  )
}

/** A line that was read, as a record; throws SESSION_CORRUPT. */
export function toRecord(value: JsonObject, seq: number): SessionRecord {
  const problem = problemOf(value, seq)
  if (problem === undefined) return value as unknown as SessionRecord
  throw new AgentError('SESSION_CORRUPT', `Line ${seq + 1} of the session cannot be used: ${problem}.`, { value: seq })
}

const MAX_DATE_MS = 8.64e15
const time = must((at) => typeof at === 'number' && at >= 0 && at <= MAX_DATE_MS, 'must be a time in milliseconds')
const ledger = must(
  (value) => Array.isArray(value) && value.every((entry) => isJsonObject(entry) || isLedgerRow(entry)),
  'must be an array of ledger entries',
)
const onlyTime = shapeOf({ at: time })
const shapes = new Map<unknown, Shape>([
  ['session', shapeOf({ id: string, agent: string, at: time, version: oneOf(SESSION_VERSION) })],
  [
    'input',
    shapeOf({ message: must(isMessage, 'must be a message'), run: string, at: time, metadata: optional(object) }),
  ],
  [
    'state',
    shapeOf({
      phase: oneOf('inputBlocked', 'started', 'step', 'suspended', 'ended', 'changed'),
      at: time,
      diff: object,
      ledger: optional(ledger),
    }),
  ],
  ['answer', shapeOf({ approval: string, at: time, answer: present })],
  ['answers', shapeOf({ answers: object, at: time })],
  ['sessionSuspended', onlyTime],
  ['sessionResumed', onlyTime],
  ['runResumed', onlyTime],
])

function problemOf(record: JsonObject, seq: number): string | undefined {
  const { type, at } = record
  if ((type === 'session') !== (seq === 0)) return 'the first record, and only the first, must be of type "session"'
  if (type === 'run') return 'a run in a session starts with its input'
  const shape = shapes.get(type)
  return shape === undefined ? (optional(time)(at, 'at') ?? problemOfEntry(record)) : shape(record, '')
}

/** The entries of a ledger that was written down. */
export function toLedger(kept: readonly (TimedLedgerEntry | LedgerRow)[]): readonly TimedLedgerEntry[] {
  return kept.map((entry) => (isLedgerRow(entry) ? fromLedgerRow(entry) : entry))
}
