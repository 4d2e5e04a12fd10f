import { isJsonObject, storedJson, type JsonObject } from '../../state/json.ts'
import { isMissing, namesIn, readExisting, type Range } from './file-access.ts'
import { sessionCorrupt, sessionTooNew } from './store.ts'

// The lines of a session, in one or more files called segments, the first of them `1.jsonl`. A process that takes over the lock
// from a writer that may still write, or that left an incomplete batch, starts a new segment. Its header says at which byte of
// the previous segment the session continues: what follows that byte does not count, whenever it is written.
//
// A segment is a header and then batches. A batch of one line without a head is just that line; any other starts with a line
// that has the number of its lines and the head. A batch that is incomplete was cut off by a crash and does not count.

const VERSION = 1
const SEGMENT = /^([1-9]\d{0,14})\.jsonl$/
const BATCH = '{"batch":'
const NEWLINE = 10
const MAX_HEADER_BYTES = 1_024

export type Log = {
  /** The number of the first of these lines. */
  readonly first: number
  readonly lines: readonly string[]
  /** Undefined if none was ever stored. */
  readonly head: JsonObject | undefined
  /** The last segment and how much of it counts. `torn`: an incomplete batch follows. */
  readonly end: Place & { readonly torn: boolean }
}

type Place = {
  readonly segment: number
  readonly bytes: number
  /** The last event that counts. Undefined in files of earlier versions. */
  readonly event?: number
}

/** The place of a line: where its batch begins. */
export type Mark = Place & { readonly line: number }

/**
 * The lines of a session, all or from a mark on; undefined if nothing was ever stored. Throws SESSION_CORRUPT and
 * STATE_VERSION.
 */
export function readLog(id: string, folder: string, mark?: Mark): Log | undefined {
  const last = lastSegment(id, folder)
  if (last === undefined) return undefined
  const segments = readSegments(id, folder, { last, mark })
  const lines: string[] = []
  let head: JsonObject | undefined
  let end = { complete: 0, torn: false }
  for (const { segment, bytes, begin, skipped, until } of segments) {
    const counted = bytes.subarray(0, until)
    const batches = readBatches(id, counted, begin)
    if (until !== undefined && batches.torn)
      throw sessionCorrupt(id, `segment ${segment} was cut in the middle of a batch`)
    for (const line of batches.lines) lines.push(line)
    head = batches.head ?? head
    end = { complete: skipped + batches.complete, torn: batches.torn }
  }
  return { first: mark?.line ?? 0, lines, head, end: { segment: last, bytes: end.complete, torn: end.torn } }
}

/** How much of a segment counts: all of the last one. */
export type SegmentPart = {
  readonly segment: number
  /** So many bytes. */
  readonly until: number | undefined
  /** Events up to this number. */
  readonly event: number | undefined
}

/** All segments in order, by their headers, without the lines. Throws SESSION_CORRUPT and STATE_VERSION. */
export function segmentChain(id: string, folder: string, last: number): readonly SegmentPart[] {
  const parts: SegmentPart[] = []
  let next: Place | undefined = { segment: last, bytes: 0 }
  while (next !== undefined) {
    const { segment, bytes: until, event } = next
    const start = readSegment(id, folder, segment, { limit: MAX_HEADER_BYTES })
    const size = process.getBuiltinModule('node:fs').lstatSync(segmentPath(folder, segment)).size
    if (until > size) throw sessionCorrupt(id, `segment ${segment} is too short`)
    parts.push({ segment, until: segment === last ? undefined : until, event })
    next = readHeader(id, segment, start.subarray(0, start.indexOf(NEWLINE) + 1))
  }
  return parts.toReversed()
}

/** The number of the last segment. */
export function lastSegment(id: string, folder: string): number | undefined {
  const names = namesIn(id, folder) ?? []
  const numbers = names.flatMap((name) => {
    const [, segment] = SEGMENT.exec(name) ?? []
    return segment === undefined ? [] : [Number(segment)]
  })
  return numbers.length === 0 ? undefined : Math.max(...numbers)
}

/** The text of a segment without any batch. */
export function segmentHeader(segment: number, after: Place | undefined): string {
  return `${JSON.stringify({ hookloop: 'session', version: VERSION, segment, ...(after && { after }) })}\n`
}

/** The text of one batch. */
export function batchText(lines: readonly string[], head: string | undefined): string {
  const [first] = lines
  if (lines.length === 1 && head === undefined && !first!.startsWith(BATCH)) return `${first}\n`
  const about = `${BATCH}{"lines":${lines.length}${head === undefined ? '' : `,"head":${head}`}}}\n`
  return lines.length === 0 ? about : `${about}${lines.join('\n')}\n`
}

export function segmentPath(folder: string, segment: number): string {
  return process.getBuiltinModule('node:path').join(folder, `${segment}.jsonl`)
}

type Segment = {
  readonly segment: number
  readonly bytes: Buffer
  /** Where the batches begin, and how many bytes of the file precede `bytes`. */
  readonly begin: number
  readonly skipped: number
  readonly until: number | undefined
}

/** In order. Each but the last has `until`, the number of bytes that count. With a mark, the first one begins there. */
function readSegments(
  id: string,
  folder: string,
  { last, mark }: { readonly last: number; readonly mark: Mark | undefined },
): readonly Segment[] {
  const segments: Segment[] = []
  let next: { segment: number; bytes: number | undefined } | undefined = { segment: last, bytes: undefined }
  while (next !== undefined) {
    const { segment, bytes: until } = next
    if (segment === mark?.segment) {
      const rest = readSegment(id, folder, segment, { from: mark.bytes })
      const counted = until === undefined ? undefined : until - mark.bytes
      if (counted !== undefined && (counted < 0 || counted > rest.length))
        throw sessionCorrupt(id, `segment ${segment} is too short`)
      segments.push({ segment, bytes: rest, begin: 0, skipped: mark.bytes, until: counted })
      break
    }
    const bytes = readSegment(id, folder, segment)
    if (until !== undefined && until > bytes.length) throw sessionCorrupt(id, `segment ${segment} is too short`)
    const begin = bytes.indexOf(NEWLINE) + 1
    const after = readHeader(id, segment, bytes.subarray(0, begin))
    if (until !== undefined && until < begin)
      throw sessionCorrupt(id, `the segment after ${segment} continues inside its header`)
    segments.push({ segment, bytes, begin, skipped: 0, until })
    next = after
  }
  return segments.toReversed()
}

function readSegment(id: string, folder: string, segment: number, range: Range = {}): Buffer {
  try {
    return readExisting(id, segmentPath(folder, segment), range)
  } catch (error) {
    throw isMissing(error) ? sessionCorrupt(id, `segment ${segment} is missing`, error) : error
  }
}

/** Checks the header of a segment and returns the place that the segment continues from. */
function readHeader(id: string, segment: number, bytes: Buffer): Place | undefined {
  const header = parseObject(bytes)
  const named = header?.['hookloop'] === 'session' ? header['version'] : undefined
  if (typeof named === 'number' && named > VERSION) throw sessionTooNew(id, named, VERSION)
  if (named !== VERSION || header?.['segment'] !== segment)
    throw sessionCorrupt(id, `segment ${segment} does not start with a header`)
  const after = header['after']
  if (after === undefined) return undefined
  const place = isJsonObject(after) ? after : {}
  const { segment: before, bytes: until, event } = place
  const isPlace = typeof before === 'number' && before < segment && isCount(before) && isCount(until)
  if (isPlace && (event === undefined || isCount(event)))
    return { segment: before, bytes: until, ...(event !== undefined && { event }) }
  throw sessionCorrupt(id, `segment ${segment} does not say what it continues from`)
}

function readBatches(
  id: string,
  bytes: Buffer,
  begin: number,
): {
  readonly lines: readonly string[]
  readonly head: JsonObject | undefined
  /** The bytes up to the end of the last complete batch. */
  readonly complete: number
  readonly torn: boolean
} {
  const text = bytes.subarray(begin, Math.max(begin, bytes.lastIndexOf(NEWLINE) + 1))
  if (!process.getBuiltinModule('node:buffer').isUtf8(text)) throw sessionCorrupt(id, 'it is not UTF-8 text')
  const found = text.toString('utf8').split('\n')
  found.pop()
  const lines: string[] = []
  let head: JsonObject | undefined
  let at = 0
  while (at < found.length) {
    const line = found[at]!
    if (!line.startsWith(BATCH)) {
      lines.push(line)
      at++
      continue
    }
    const batch = readBatch(id, line)
    if (at + 1 + batch.lines > found.length) break // incomplete
    for (let i = at + 1; i <= at + batch.lines; i++) lines.push(found[i]!)
    head = batch.head ?? head
    at += 1 + batch.lines
  }
  const cut = found.slice(at).reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
  const complete = begin + text.length - cut
  return { lines, head, complete, torn: complete < bytes.length }
}

function readBatch(id: string, line: string): { readonly lines: number; readonly head: JsonObject | undefined } {
  const batch = parseObject(line)?.['batch']
  const { lines, head } = isJsonObject(batch) ? batch : {}
  if (isCount(lines) && (head === undefined || isJsonObject(head))) return { lines, head }
  throw sessionCorrupt(id, 'a batch does not say how many lines it has')
}

export function parseObject(text: string | Buffer): JsonObject | undefined {
  try {
    const value = storedJson(JSON.parse(text.toString('utf8')), 'line')
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
