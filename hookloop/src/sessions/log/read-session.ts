import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import type { RunLog } from '../../effects/log.ts'
import { AgentError } from '../../errors.ts'
import { RunCollector, type RecordedRuns } from './recorded-run.ts'
import { SessionCache } from './session-cache.ts'
import { noLine, readLines, type LineEnd } from './session-log.ts'
import { SessionReader } from './session-reader.ts'
import { checkVersion, toRecord, type NumberedRecord, type Turns } from './session-records.ts'
import {
  sessionCorrupt,
  sessionUnknown,
  type ReadOptions,
  type SessionStore,
  type StoredSession,
} from '../stores/store.ts'

/** The content of a session at one point in time. */
export type SessionSnapshot = {
  readonly end: LineEnd
  /** The agent that started the session, and when. `createdAt` is undefined if the session is empty. */
  readonly agent: string
  readonly createdAt: number | undefined
  /** Whether the session ever had a message, and whether it is a fork. */
  readonly hasInput: boolean
  readonly isFork: boolean
  readonly state: AgentState | undefined
  /** The latest run, and the same if it has not ended. */
  readonly log: RunLog
  readonly open: RunLog | undefined
  /** Whether the user has suspended the session. */
  readonly isSuspended: boolean
  readonly turns: Turns
}

/** A session and all its records. */
export type SessionHistory = SessionSnapshot & { readonly records: readonly NumberedRecord[] }

/** A session as a process has it in memory: to append to it, or to read only what was appended since. */
export type LoadedSession = {
  readonly reader: SessionReader
  readonly end: LineEnd
  readonly lastLine: string
  /** The length of the last snapshot, of the lines after it, and of everything that was read. */
  readonly snapshotChars: number
  readonly tailChars: number
  readonly chars: number
}

/**
 * Reads all lines of a session: builds the state from its changes, and collects what follows the last of them. Throws
 * SESSION_CORRUPT, also if the lines belong to another id, and STATE_VERSION if they are of another version.
 */
export function readSession(lines: readonly string[], id?: string): SessionHistory {
  const records: NumberedRecord[] = []
  const loaded = readAll(lines, id, (record) => records.push(record))
  return { ...snapshotOf(loaded, id), records }
}

/** Reads the runs in these lines, which may be the first lines of a session, and the state after them. */
export function readRecordedRuns(lines: readonly string[], id?: string): RecordedRuns & Pick<SessionSnapshot, 'state'> {
  const { collector, loaded } = loadRuns(lines, id)
  return { runs: collector.runs, rewound: collector.rewound, state: loaded.reader.state }
}

/** A session in memory with its runs. */
export type LoadedRuns = { readonly collector: RunCollector; readonly loaded: LoadedSession }

function loadRuns(lines: readonly string[], id?: string): LoadedRuns {
  const collector = new RunCollector()
  const loaded = readAll(lines, id, (record, reader) => collector.add(record, reader))
  checkId(loaded, id)
  return { collector, loaded }
}

/** The runs of a session in a store, or the one with this index, with as little reading as possible. */
export async function readStoredRuns(store: SessionStore, id: string, run?: number): Promise<RecordedRuns> {
  const read = readPart(store, id)
  const last = run === -1 ? await runsAfterSnapshot(id, read) : undefined
  if (last !== undefined) return last
  const { lines } = await read()
  if (run === undefined) return loadRuns(lines, id).collector
  const { runs, rewound } = runsUpTo(run, lines, id)
  const found = runs.at(run)
  return { runs: found === undefined ? [] : [found], rewound }
}

/** The runs in these lines. Damaged lines do not hide a run that was followed by another one before them. */
function runsUpTo(run: number, lines: readonly string[], id: string): RecordedRuns {
  try {
    return loadRuns(lines, id).collector
  } catch (error) {
    const damaged = error instanceof AgentError && error.code === 'SESSION_CORRUPT' ? error.value : undefined
    const readable = typeof damaged === 'number' ? loadRuns(lines.slice(0, damaged), id).collector : undefined
    if (readable === undefined || run < 0 || readable.runs.length <= run + 1) throw error
    return readable
  }
}

/** The runs of a session. Of those that were read before, only what was appended since is read; the same if nothing was. */
export async function followRuns(store: SessionStore, id: string, before?: LoadedRuns): Promise<LoadedRuns> {
  const read = readPart(store, id)
  const collector = new RunCollector(before?.collector)
  const loaded = await fromCache(before?.loaded, read, (record, reader) => collector.add(record, reader))
  if (loaded === undefined) return loadRuns((await read()).lines, id)
  return loaded === before!.loaded ? before! : { collector, loaded }
}

/** The last run, if it has started after the last snapshot. */
async function runsAfterSnapshot(id: string, read: Read): Promise<RecordedRuns | undefined> {
  const { head } = await read({ after: Infinity })
  const collector = new RunCollector()
  const loaded = await fromSnapshot(head, read, (record, reader) => collector.add(record, reader))
  if (loaded === undefined || collector.runs.length === 0) return undefined
  checkId(loaded, id)
  return { runs: collector.runs.slice(-1), rewound: collector.rewound }
}

type Read = (options?: ReadOptions) => StoredSession | Promise<StoredSession>

function readPart(store: SessionStore, id: string): Read {
  return async (options) => {
    const found = await store.read(id, options)
    if (found === undefined) throw sessionUnknown(id)
    return found
  }
}

/** Reads all records of a session from a store. Throws SESSION_UNKNOWN if it does not exist. */
export async function readStoredSession(store: SessionStore, id: string): Promise<SessionHistory> {
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  return readSession(stored.lines, id)
}

/** The current content of a session; undefined if it does not exist. Reads only what follows the last snapshot. */
export async function readCurrent(store: SessionStore, id: string): Promise<SessionSnapshot | undefined> {
  const stored = await store.read(id, { after: Infinity })
  if (stored === undefined) return undefined
  const read = readPart(store, id)
  const loaded = (await fromSnapshot(stored.head, read)) ?? readAll((await read()).lines, id)
  return snapshotOf(loaded, id)
}

const cache = new SessionCache<LoadedSession>()
/** Sessions whose reader has read on: it cannot read the same lines again. */
const continued = new WeakSet<LoadedSession>()

/**
 * Loads a session that is locked, with as little reading as possible: what was appended since this process had it last, or its
 * last snapshot and what follows, or all lines. What does not fit the chain of checksums is not used: then more is read.
 */
export async function loadSession(
  store: SessionStore,
  {
    id,
    head,
    read,
  }: {
    readonly id: string
    readonly head: JsonObject
    readonly read: Read
  },
): Promise<LoadedSession> {
  const known = cache.take(store, id) // it is changed from now on, and remembered when all of it is stored
  const loaded = (await fromCache(known, read)) ?? (await fromSnapshot(head, read)) ?? readAll((await read()).lines, id)
  checkId(loaded, id)
  return loaded
}

/** Remembers what this process has appended to a session. */
export function rememberSession(store: SessionStore, id: string, loaded: LoadedSession): void {
  cache.set(store, id, loaded)
}

async function fromCache(
  known: LoadedSession | undefined,
  read: Read,
  follow?: Follow,
): Promise<LoadedSession | undefined> {
  if (known === undefined || known.end.seq < 0) return undefined
  const [last, ...lines] = (await read({ after: known.end.seq - 1 })).lines
  if (last !== known.lastLine || continued.has(known)) return undefined
  if (lines.length === 0) return known
  try {
    continued.add(known)
    return addLines(known, lines, follow)
  } catch {
    return undefined // reading all lines reports it
  }
}

async function fromSnapshot(head: JsonObject, read: Read, follow?: Follow): Promise<LoadedSession | undefined> {
  const { line, sum } = isJsonObject(head['snapshot']) ? head['snapshot'] : {}
  if (!Number.isSafeInteger(line) || typeof sum !== 'string') return undefined
  const before = { seq: (line as number) - 1, sum }
  const { lines } = await read({ after: before.seq })
  try {
    if (toRecord(readLines(lines.slice(0, 1), before).records[0]!, before.seq + 1).t !== 'snapshot') return undefined
    return addLines({ ...nothing, end: before, reader: new SessionReader() }, lines, follow)
  } catch {
    return undefined // all lines are read instead
  }
}

type Follow = (record: NumberedRecord, reader: SessionReader) => void

/** Follows more lines. Changes the reader. */
function addLines(loaded: LoadedSession, lines: readonly string[], follow?: Follow): LoadedSession {
  const { reader } = loaded
  const read = readLines(lines, loaded.end)
  let { snapshotChars, tailChars, chars } = loaded
  for (const [i, value] of read.records.entries()) {
    const { length } = lines[i]!
    const record = toRecord(value, loaded.end.seq + 1 + i) as NumberedRecord
    reader.add(record)
    follow?.(record, reader)
    tailChars += length
    chars += length
    if (record.t !== 'snapshot') continue
    snapshotChars = length
    tailChars = 0
  }
  return { reader, end: read.end, lastLine: lines.at(-1) ?? loaded.lastLine, snapshotChars, tailChars, chars }
}

const nothing = { end: noLine, lastLine: '', snapshotChars: 0, tailChars: 0, chars: 0 }

function readAll(lines: readonly string[], id?: string, follow?: Follow): LoadedSession {
  checkVersion(lines[0])
  const reader = new SessionReader()
  try {
    return addLines({ ...nothing, reader }, lines, follow)
  } catch (error) {
    throw asCorrupt(error, reader.start?.id ?? id)
  }
}

function checkId({ reader: { start } }: LoadedSession, id: string | undefined): void {
  if (id !== undefined && start !== undefined && id !== start.id)
    throw sessionCorrupt(id, `its lines are those of the session "${start.id}"`)
}

/** What a loaded session amounts to. */
export function snapshotOf(loaded: LoadedSession, id?: string): SessionSnapshot {
  checkId(loaded, id)
  const { start, state, log, open, isSuspended, hasInput, turns } = loaded.reader
  return {
    end: loaded.end,
    agent: start?.agent ?? 'agent',
    createdAt: start?.at,
    hasInput,
    isFork: start?.from !== undefined,
    state,
    log,
    open,
    isSuspended,
    turns,
  }
}

function asCorrupt(error: unknown, id = ''): unknown {
  return error instanceof AgentError && error.code === 'STATE_INVALID' ? sessionCorrupt(id, error.message) : error
}
