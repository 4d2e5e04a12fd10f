import type { Answer, Answers } from '../../state/tool-call.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { fromLedgerRow, isLedgerRow, type LedgerRow, type TimedLedgerEntry } from '../../state/ledger.ts'
import { isMessage, type Message } from '../../state/message.ts'
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

const phases: readonly string[] = ['inputBlocked', 'started', 'step', 'suspended', 'ended', 'changed'] satisfies (
  | Checkpoint['phase']
  | 'changed'
)[]

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

/** The last moment that a Date can hold. */
const END_OF_TIME = 8.64e15

function problemOf(record: JsonObject, seq: number): string | undefined {
  const { type, at } = record
  if ((type === 'session') !== (seq === 0)) return 'a session begins with its one line of type "session"'
  if (at !== undefined && !(typeof at === 'number' && at >= 0 && at <= END_OF_TIME)) return '"at" is no time'
  const text = (key: string): string | undefined =>
    typeof record[key] === 'string' ? undefined : `"${key}" must be a text`
  const time = at === undefined ? '"at" is missing' : undefined
  const object = (key: string): string | undefined =>
    isJsonObject(record[key]) ? undefined : `"${key}" must be an object`
  switch (type) {
    case 'session':
      return (
        text('id') ?? text('agent') ?? time ?? (record['version'] === SESSION_VERSION ? undefined : '"version" is none')
      )
    case 'input':
      if (!isMessage(record['message'])) return '"message" is none'
      return text('run') ?? time ?? (record['metadata'] === undefined ? undefined : object('metadata'))
    case 'state':
      if (!phases.includes(record['phase'] as string)) return '"phase" is not known'
      return time ?? object('diff') ?? (isLedger(record['ledger'] ?? []) ? undefined : '"ledger" must be a list')
    case 'answer':
      return text('approval') ?? time ?? ('answer' in record ? undefined : '"answer" is missing')
    case 'answers':
      return object('answers') ?? time
    case 'sessionSuspended':
    case 'sessionResumed':
    case 'runResumed':
      return time
    case 'run':
      return 'a run in a session begins with its input'
    default:
      return problemOfEntry(record)
  }
}

function isLedger(value: Json): boolean {
  return Array.isArray(value) && value.every((entry) => isJsonObject(entry) || isLedgerRow(entry))
}

/** The entries of a ledger that was written down. */
export function toLedger(kept: readonly (TimedLedgerEntry | LedgerRow)[]): readonly TimedLedgerEntry[] {
  return kept.map((entry) => (isLedgerRow(entry) ? fromLedgerRow(entry) : entry))
}
