import { isJsonObject, type JsonObject } from '../../values/json.ts'
import { sessionCorrupt, sessionUnknown, type SessionStore } from '../stores/store.ts'
import type { LineEnd } from './session-log.ts'
import { SessionReader } from './session-reader.ts'

/** Reads all lines of a session, with its runs. Throws SESSION_CORRUPT, also if the lines belong to another id. */
export function readSession(lines: readonly string[], id?: string): SessionReader {
  const reader = new SessionReader({ id, collects: true })
  reader.read(lines)
  return reader
}

/** A session with its runs, and its lines. */
export type StoredHistory = { readonly reader: SessionReader; readonly lines: readonly string[] }

/** Reads all lines of a session. Throws SESSION_UNKNOWN. */
export async function readHistory(store: SessionStore, id: string): Promise<StoredHistory> {
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  const { lines, head } = stored
  const reader = readSession(lines, id)
  checkEnd(reader, head, id)
  return { reader, lines }
}

/** How to load a session. */
export type Loading = {
  /** What this process has of it. It reads on, so it must not be used otherwise meanwhile. */
  readonly known?: SessionReader | undefined
  /** Its head, if it is known. */
  readonly head?: JsonObject
  /** Which runs are collected: all, or those since the last snapshot. Default: none. */
  readonly runs?: 'all' | 'recent'
}

/**
 * Loads a session with as little reading as possible: what was appended since this process had it, or its last snapshot and what
 * follows, or all lines. What does not fit the chain of checksums is not used: then more is read. Undefined if there is none.
 */
export async function loadSession(
  store: SessionStore,
  id: string,
  { known, head: given, runs }: Loading = {},
): Promise<SessionReader | undefined> {
  const read =
    (await readOn(store, id, known)) ?? (runs === 'all' ? undefined : await readRecent(store, id, { given, runs }))
  if (read !== undefined) return checkEnd(read.reader, read.head, id)
  const stored = await store.read(id)
  if (stored === undefined) return undefined
  const reader = new SessionReader({ id, collects: runs !== undefined })
  reader.read(stored.lines)
  return checkEnd(reader, stored.head, id)
}

type Read = { readonly reader: SessionReader; readonly head: JsonObject }

/** What was appended since. */
async function readOn(store: SessionStore, id: string, known: SessionReader | undefined): Promise<Read | undefined> {
  if (known === undefined || known.end.seq < 0) return undefined
  const { lines = [], head = {} } = (await store.read(id, { after: known.end.seq - 1 })) ?? {}
  return lines[0] === known.lastLine && canRead(known, lines.slice(1)) ? { reader: known, head } : undefined
}

/** The last snapshot and what follows. */
async function readRecent(
  store: SessionStore,
  id: string,
  { given, runs }: { readonly given: JsonObject | undefined; readonly runs: Loading['runs'] },
): Promise<Read | undefined> {
  const after = snapshotIn(given ?? (await store.read(id, { after: Infinity }))?.head)
  if (after === undefined) return undefined
  const { lines = [], head = {} } = (await store.read(id, { after: after.seq })) ?? {}
  const reader = new SessionReader({ id, after, collects: runs !== undefined })
  return lines.length > 0 && canRead(reader, lines) ? { reader, head } : undefined
}

/** What cannot be read is reported when all lines are read. */
function canRead(reader: SessionReader, lines: readonly string[]): boolean {
  try {
    reader.read(lines)
    return true
  } catch {
    return false
  }
}

/** The line before the last snapshot, by the head of the session. */
export function snapshotIn(head: JsonObject = {}): LineEnd | undefined {
  const { line, sum } = isJsonObject(head['snapshot']) ? head['snapshot'] : {}
  return typeof line === 'number' && Number.isSafeInteger(line) && typeof sum === 'string'
    ? { seq: line - 1, sum }
    : undefined
}

/** What the head of a session says of its last line. It is stored with every line. */
export function endInHead({ seq, sum }: LineEnd): JsonObject {
  return { line: seq, sum }
}

/** The head was stored with the last line, or before it. Throws SESSION_CORRUPT if that line is missing or another one. */
function checkEnd(reader: SessionReader, head: JsonObject, id: string): SessionReader {
  const { line, sum } = isJsonObject(head['end']) ? head['end'] : {}
  const { seq } = reader.end
  if (typeof line !== 'number' || seq > line || (seq === line && reader.end.sum === sum)) return reader
  throw sessionCorrupt(
    id,
    `it has ${seq + 1} lines, and its head is that of ${line + 1}: lines at its end were removed or changed`,
  )
}
