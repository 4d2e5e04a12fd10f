import { isJsonObject, storedJson, type JsonObject } from '../../state/json.ts'
import { isMissing, namesIn, readExisting } from './file-access.ts'
import { sessionCorrupt, sessionTooNew } from './store.ts'

// What a session holds, as text in one or more files. `1.jsonl` begins it. Whoever takes a session over from a writer
// that may still write, or that left something torn, begins a file of its own, which says where in the one before the
// session went on: what is after that place was never stored, whatever it is and whenever it is written.
//
// A file is a line about itself and then batches. A batch of one line is that line; any other is a line that says how many
// lines belong to it, and with which head, and then those. A batch without all of its lines was cut off and is none.

const VERSION = 1
const SEGMENT = /^([1-9]\d{0,14})\.jsonl$/
const BATCH = '{"batch":'
const NEWLINE = 10

export type Log = {
  readonly lines: readonly string[]
  /** Nothing as long as none was given. */
  readonly head: JsonObject | undefined
  /** The file that it ends in, and how far: the file may be longer than what counts. */
  readonly tip: Place & { readonly torn: boolean }
}

type Place = { readonly segment: number; readonly bytes: number }

/** Everything that a session holds; nothing if nothing was ever stored. Throws SESSION_CORRUPT and STATE_VERSION. */
export function readLog(id: string, folder: string): Log | undefined {
  const tip = tipOf(id, folder)
  if (tip === undefined) return undefined
  const segments = readSegments(id, folder, tip)
  const lines: string[] = []
  let head: JsonObject | undefined
  let end = { whole: 0, torn: false }
  for (const { segment, bytes, begin, until } of segments) {
    const counted = bytes.subarray(0, until)
    const batches = readBatches(id, counted, begin)
    if (until !== undefined && batches.torn)
      throw sessionCorrupt(id, `file ${segment} was cut in the middle of a batch`)
    for (const line of batches.lines) lines.push(line)
    head = batches.head ?? head
    end = batches
  }
  return { lines, head, tip: { segment: tip, bytes: end.whole, torn: end.torn } }
}

/** The number of the file that a session ends in. */
export function tipOf(id: string, folder: string): number | undefined {
  const names = namesIn(id, folder) ?? []
  const numbers = names.flatMap((name) => {
    const [, segment] = SEGMENT.exec(name) ?? []
    return segment === undefined ? [] : [Number(segment)]
  })
  return numbers.length === 0 ? undefined : Math.max(...numbers)
}

/** The text of a new file, before anything is in it. */
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
  readonly begin: number
  readonly until: number | undefined
}

/** From the first to the last; each but the last with the place up to which it counts. */
function readSegments(id: string, folder: string, tip: number): readonly Segment[] {
  const segments: Segment[] = []
  let next: { segment: number; bytes: number | undefined } | undefined = { segment: tip, bytes: undefined }
  while (next !== undefined) {
    const { segment, bytes: until } = next
    const bytes = readSegment(id, folder, segment)
    if (until !== undefined && until > bytes.length) throw sessionCorrupt(id, `file ${segment} was cut`)
    const begin = bytes.indexOf(NEWLINE) + 1
    const after = readHeader(id, segment, bytes.subarray(0, begin))
    if (until !== undefined && until < begin) throw sessionCorrupt(id, `the file after ${segment} begins too early`)
    segments.push({ segment, bytes, begin, until })
    next = after
  }
  return segments.toReversed()
}

function readSegment(id: string, folder: string, segment: number): Buffer {
  try {
    return readExisting(id, segmentPath(folder, segment))
  } catch (error) {
    throw isMissing(error) ? sessionCorrupt(id, `file ${segment} is missing`, error) : error
  }
}

/** Checks the line that a file begins with, and gives the place that it goes on from. */
function readHeader(id: string, segment: number, bytes: Buffer): Place | undefined {
  const header = parseObject(bytes)
  const named = header?.['hookloop'] === 'session' ? header['version'] : undefined
  if (typeof named === 'number' && named > VERSION) throw sessionTooNew(id, named, VERSION)
  if (named !== VERSION || header?.['segment'] !== segment)
    throw sessionCorrupt(id, `file ${segment} does not begin as a session does`)
  const after = header['after']
  if (after === undefined) return undefined
  const place = isJsonObject(after) ? after : {}
  const { segment: before, bytes: until } = place
  if (typeof before === 'number' && before < segment && isCount(before) && isCount(until))
    return { segment: before, bytes: until }
  throw sessionCorrupt(id, `file ${segment} does not say what it goes on from`)
}

function readBatches(
  id: string,
  bytes: Buffer,
  begin: number,
): {
  readonly lines: readonly string[]
  readonly head: JsonObject | undefined
  readonly whole: number
  readonly torn: boolean
} {
  const complete = bytes.subarray(begin, Math.max(begin, bytes.lastIndexOf(NEWLINE) + 1))
  if (!process.getBuiltinModule('node:buffer').isUtf8(complete)) throw sessionCorrupt(id, 'it is not text')
  const found = complete.toString('utf8').split('\n')
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
    if (at + 1 + batch.lines > found.length) break // the rest of it was never written
    for (let i = at + 1; i <= at + batch.lines; i++) lines.push(found[i]!)
    head = batch.head ?? head
    at += 1 + batch.lines
  }
  const cut = found.slice(at).reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
  const whole = begin + complete.length - cut
  return { lines, head, whole, torn: whole < bytes.length }
}

function readBatch(id: string, line: string): { readonly lines: number; readonly head: JsonObject | undefined } {
  const batch = parseObject(line)?.['batch']
  const { lines, head } = isJsonObject(batch) ? batch : {}
  if (isCount(lines) && (head === undefined || isJsonObject(head))) return { lines, head }
  throw sessionCorrupt(id, 'a batch does not say what belongs to it')
}

function parseObject(text: string | Buffer): JsonObject | undefined {
  try {
    const value = storedJson(JSON.parse(text.toString('utf8')), 'line')
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
