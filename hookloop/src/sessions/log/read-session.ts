import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import type { LedgerRow, TimedLedgerEntry } from '../../state/ledger.ts'
import type { List } from '../../state/list.ts'
import { AgentError } from '../../errors.ts'
import { RunCollector, type RecordedRuns, type RewoundRecord } from './recorded-run.ts'
import { SessionCache } from './session-cache.ts'
import { noLine, readLines, type LineEnd } from './session-log.ts'
import { decodeLine } from './record-codec.ts'
import { checkVersion, toLedger, toRecord, type NumberedRecord, type Turns } from './session-records.ts'
import { SessionReader, type OpenRun } from './session-reader.ts'
import { noPages, restoreSnapshot, type StoredPages } from './session-snapshot.ts'
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
  /** Of the latest run. */
  readonly ledger: List<TimedLedgerEntry | LedgerRow>
  readonly open: OpenRun | undefined
  /** Whether the user has suspended the session. */
  readonly isSuspended: boolean
  readonly turns: Turns
}

/** A session and all its records. */
export type SessionHistory = Omit<SessionSnapshot, 'ledger'> & {
  readonly ledger: readonly TimedLedgerEntry[]
  readonly records: readonly NumberedRecord[]
}

/** A session as a process has it in memory: to append to it, or to read only what was appended since. */
export type LoadedSession = {
  readonly reader: SessionReader
  readonly end: LineEnd
  readonly lastLine: string
  readonly pages: StoredPages
  /** The length of the last snapshot, of the lines after it, and of everything that was read. */
  readonly snapshotChars: number
  readonly tailChars: number
  readonly chars: number
}

/**
 * Reads all lines of a session: builds the state from its changes, and collects what follows the last of them. Throws
 * SESSION_CORRUPT, also if the lines belong to another id, and STATE_VERSION if they are of a newer version.
 */
export function readSession(lines: readonly string[], id?: string): SessionHistory {
  const records: NumberedRecord[] = []
  const snapshot = snapshotOf(
    readAll(lines, id, (record) => records.push(record)),
    id,
  )
  return { ...snapshot, ledger: toLedger(snapshot.ledger.slice()), records }
}

/** Reads the runs in these lines, which may be the first lines of a session, and the state after them. */
export function readRecordedRuns(lines: readonly string[], id?: string): RecordedRuns & Pick<SessionSnapshot, 'state'> {
  const { collector, loaded } = loadRuns(lines, id)
  return { runs: collector.runs, rewound: collector.rewound, state: loaded.reader.state }
}

/** A session in memory with its runs. */
export type LoadedRuns = { readonly collector: RunCollector; readonly loaded: LoadedSession; readonly chars: number }

function loadRuns(lines: readonly string[], id?: string): LoadedRuns {
  const collector = new RunCollector()
  const loaded = readAll(lines, id, (record, reader) => collector.add(record, reader))
  snapshotOf(loaded, id)
  return { collector, loaded, chars: loaded.chars }
}

const runsCache = new SessionCache<LoadedRuns>()

/** The runs of a session in a store, or the one with this index, with as little reading as possible. */
export async function readStoredRuns(store: SessionStore, id: string, run?: number): Promise<RecordedRuns> {
  const read = readPart(store, id)
  const known = await continuedRuns(runsCache.get(store, id), read)
  if (known === undefined && run !== undefined) {
    const last = run === -1 ? await runsAfterSnapshot(id, read) : undefined
    return last ?? oneRun((await read()).lines, id, run)
  }
  const all = known ?? loadRuns((await read()).lines, id)
  runsCache.set(store, id, all)
  return chosen(all.collector, run)
}

function chosen({ runs, rewound }: RecordedRuns, run: number | undefined): RecordedRuns {
  const found = run === undefined ? undefined : runs.at(run)
  return { runs: run === undefined ? runs : found === undefined ? [] : [found], rewound }
}

/** The runs of a session. Of those that were read before, only what was appended since is read; the same if nothing was. */
export async function followRuns(store: SessionStore, id: string, before?: LoadedRuns): Promise<LoadedRuns> {
  const read = readPart(store, id)
  return (await continuedRuns(before, read)) ?? loadRuns((await read()).lines, id)
}

/** The runs that this process has read before, and what was appended since. */
async function continuedRuns(known: LoadedRuns | undefined, read: Read): Promise<LoadedRuns | undefined> {
  if (known === undefined) return undefined
  const collector = new RunCollector(known.collector)
  const loaded = await fromCache(known.loaded, read, (record, reader) => collector.add(record, reader))
  if (loaded?.end.seq === known.loaded.end.seq) return known
  return loaded && { collector, loaded, chars: loaded.chars }
}

/** The last run, if it has started after the last snapshot. */
async function runsAfterSnapshot(id: string, read: Read): Promise<RecordedRuns | undefined> {
  const { head } = await read({ after: Infinity })
  const collector = new RunCollector()
  const loaded = await fromSnapshot(head, read, (record, reader) => collector.add(record, reader))
  if (loaded?.reader.runs === undefined || collector.runs.length === 0) return undefined
  snapshotOf(loaded, id)
  return chosen(collector, -1)
}

/** One run. The lines after it are not read, except for rewinds. */
function oneRun(lines: readonly string[], id: string, run: number): RecordedRuns {
  const inputs = linesOf(lines, 'input')
  const index = run < 0 ? inputs.length + run : run
  if (inputs[index] === undefined) return noRuns
  const end = inputs[index + 1] ?? lines.length
  const { runs, rewound } = loadRuns(lines.slice(0, end), id).collector
  const later = lines.slice(end)
  const rewinds = linesOf(later, 'rewound').map((i) => toRecord(JSON.parse(later[i]!) as JsonObject, end + i))
  return { runs: runs.slice(-1), rewound: [...rewound, ...(rewinds as RewoundRecord[])] }
}

const noRuns: RecordedRuns = { runs: [], rewound: [] }

/** Where the records of a type are. Only lines that may be of this type are parsed. */
function linesOf(lines: readonly string[], type: string): readonly number[] {
  const is = (line: string): boolean => {
    try {
      return (JSON.parse(line) as JsonObject)['type'] === type
    } catch {
      return false // reported when it is read
    }
  }
  return lines.flatMap((line, i) => (line.includes(`"type":"${type}"`) && is(line) ? [i] : []))
}

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
  return snapshotOf(await loadSession(store, { id, head: stored.head, read: readPart(store, id) }), id)
}

const cache = new SessionCache<LoadedSession>()

/**
 * Loads a session with as little reading as possible: what was appended since this process had it last, or its last snapshot
 * and what follows, or all lines. What does not fit the chain of checksums is not used: then more is read.
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
    readonly read: (options?: ReadOptions) => StoredSession | Promise<StoredSession>
  },
): Promise<LoadedSession> {
  const loaded =
    (await fromCache(cache.get(store, id), read)) ??
    (await fromSnapshot(head, read)) ??
    readAll((await read()).lines, id)
  checkId(loaded, id)
  cache.set(store, id, loaded)
  return loaded
}

/** Remembers what this process has appended to a session. */
export function rememberSession(store: SessionStore, id: string, loaded: LoadedSession): void {
  cache.set(store, id, loaded)
}

type Read = (options?: ReadOptions) => StoredSession | Promise<StoredSession>

async function fromCache(
  known: LoadedSession | undefined,
  read: Read,
  follow?: Follow,
): Promise<LoadedSession | undefined> {
  if (known === undefined || known.end.seq < 0) return undefined
  const [last, ...lines] = (await read({ after: known.end.seq - 1 })).lines
  if (last !== known.lastLine) return undefined
  try {
    return addLines({ ...known, reader: known.reader.clone() }, lines, follow)
  } catch {
    return undefined // reading all lines reports it
  }
}

async function fromSnapshot(head: JsonObject, read: Read, follow?: Follow): Promise<LoadedSession | undefined> {
  const { line, sum } = isJsonObject(head['snapshot']) ? head['snapshot'] : {}
  if (!Number.isSafeInteger(line) || typeof sum !== 'string') return undefined
  const before = { seq: (line as number) - 1, sum }
  const { lines, pages = [] } = await read({ after: before.seq, pages: true })
  try {
    const { records, end } = readLines(lines.slice(0, 1), before)
    const record = toRecord(records[0]!, end.seq)
    if (record.type !== 'snapshot') return undefined
    const chars = pages.reduce((total, page) => total + page.length, lines[0]!.length)
    const restored = {
      ...restoreSnapshot(record, pages),
      end,
      lastLine: lines[0]!,
      snapshotChars: lines[0]!.length,
      tailChars: 0,
      chars,
    }
    return addLines(restored, lines.slice(1), follow)
  } catch {
    return undefined // all lines are read instead
  }
}

type Follow = (record: NumberedRecord, reader: SessionReader) => void

/** Follows more lines. Changes the reader. */
function addLines(loaded: LoadedSession, lines: readonly string[], follow?: Follow): LoadedSession {
  const { reader } = loaded
  const read = readLines(lines, loaded.end)
  let { pages, snapshotChars, tailChars } = loaded
  for (const [i, line] of read.records.entries()) {
    const seq = loaded.end.seq + 1 + i
    tailChars += lines[i]!.length
    for (const value of decodeLine(line, reader)) {
      const record = toRecord(value, seq)
      reader.add(record)
      follow?.(record as NumberedRecord, reader)
      if (record.type !== 'snapshot') continue
      pages = noPages // the pages themselves were not read: the next snapshot writes them again
      snapshotChars = lines[i]!.length
      tailChars = 0
    }
  }
  const chars = loaded.chars + lines.reduce((sum, { length }) => sum + length, 0)
  return { reader, end: read.end, lastLine: lines.at(-1) ?? loaded.lastLine, pages, snapshotChars, tailChars, chars }
}

const nothing = { end: noLine, lastLine: '', pages: noPages, snapshotChars: 0, tailChars: 0, chars: 0 }

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

/** What a loaded session amounts to. Throws SESSION_CORRUPT if its last run does not fit its state. */
export function snapshotOf(loaded: LoadedSession, id?: string): SessionSnapshot {
  checkId(loaded, id)
  const { start, state, ledger, isSuspended, hasInput, turns } = loaded.reader
  try {
    return {
      end: loaded.end,
      agent: start?.agent ?? 'agent',
      createdAt: start?.at,
      hasInput,
      isFork: start?.from !== undefined,
      state,
      ledger,
      open: loaded.reader.openRun(),
      isSuspended,
      turns,
    }
  } catch (error) {
    throw asCorrupt(error, start?.id)
  }
}

function asCorrupt(error: unknown, id = ''): unknown {
  return error instanceof AgentError && error.code === 'STATE_INVALID' ? sessionCorrupt(id, error.message) : error
}
