import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { namesIn, readFile } from './file-access.ts'
import { eventsPath, type EventsEnd } from './file-events.ts'
import { isCount, lastSegment, readLog, segmentChain, segmentPath, type Log, type Mark } from './file-log.ts'
import { readPages } from './file-pages.ts'
import { readHead, sessionCorrupt, type ReadOptions, type StoredSession } from './store.ts'

/** Where a session ends and its head, saved when it is released. */
export const HEAD = 'head.json'

/** The lines of a session from the last mark on, if that is far enough, or all lines. */
export function readLines(id: string, folder: string, after = -1): Log | undefined {
  const { mark } = savedEnd(id, folder) ?? {}
  if (mark !== undefined && mark.line <= after + 1) {
    try {
      const log = readLog(id, folder, mark)
      if (log?.head !== undefined) return log
    } catch {
      // Then all lines are read, which reports what is wrong.
    }
  }
  const log = readLog(id, folder)
  if (log === undefined && namesIn(id, folder)?.includes(HEAD)) throw sessionCorrupt(id, 'its lines are missing')
  return log
}

export function readPart(
  id: string,
  folder: string,
  { after = -1, pages = false }: ReadOptions,
): StoredSession | undefined {
  const end = after === Infinity ? savedEnd(id, folder) : undefined
  const known = end !== undefined && isCurrent(id, folder, end) ? { first: 0, head: end.head, lines: [] } : undefined
  const log = known ?? readLines(id, folder, after)
  if (log === undefined) return undefined
  const part = { head: log.head ?? {}, lines: log.lines.slice(Math.max(0, after + 1 - log.first)) }
  return pages ? { ...part, pages: readPages(id, folder) } : part
}

/** Where a session ends: how many lines it has, and where the lines are that a reader usually starts with. */
export type End = {
  readonly segment: number
  readonly bytes: number
  readonly torn: boolean
  readonly lines: number
  readonly head: JsonObject
  readonly mark: Mark | undefined
  /** Undefined if it is not known. */
  readonly events: EventsEnd | undefined
}

export function currentEnd(id: string, folder: string): End | undefined {
  const saved = savedEnd(id, folder)
  if (saved !== undefined && isCurrent(id, folder, saved)) return saved
  const log = readLines(id, folder, Infinity)
  if (log === undefined) return undefined
  const lines = log.first + log.lines.length
  return { ...log.end, lines, head: log.head ?? {}, mark: saved?.mark, events: undefined }
}

/** The end that was saved when the session was released, if it can be read. */
function savedEnd(id: string, folder: string): End | undefined {
  try {
    const saved = readHead(id, readFile(id, path().join(folder, HEAD))?.toString('utf8'))
    const { segment, bytes, lines, head, mark } = saved
    if (!isCount(segment) || !isCount(bytes) || !isCount(lines) || !isJsonObject(head)) return undefined
    const place = isJsonObject(mark) && isCount(mark['segment']) && isCount(mark['bytes']) && isCount(mark['line'])
    const known = { segment, bytes, lines, head, torn: false, mark: place ? (mark as Mark) : undefined }
    return { ...known, events: savedEvents(saved['events'], eventsPath(folder, segment)) }
  } catch {
    return undefined // it only saves reading the lines
  }
}

function savedEvents(saved: unknown, path: string): EventsEnd | undefined {
  const { log, seq, bytes, transientBytes } = isJsonObject(saved) ? saved : {}
  const size = fs().lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (!isCount(seq) || bytes !== size || !isCount(transientBytes)) return undefined
  if (log !== undefined && typeof log !== 'string') return undefined
  return { log, seq, bytes: size, transientBytes }
}

/** Whether nothing was written since the end was saved. Throws if a segment cannot be read. */
function isCurrent(id: string, folder: string, { segment, bytes }: End): boolean {
  if (lastSegment(id, folder) !== segment) return false
  segmentChain(id, folder, segment) // checks them
  return fs().lstatSync(segmentPath(folder, segment), { throwIfNoEntry: false })?.size === bytes
}

function path(): typeof import('node:path') {
  return process.getBuiltinModule('node:path')
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}
