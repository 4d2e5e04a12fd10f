import { isJsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { eventRows } from './event-rows.ts'
import { namesIn, openForAppend, openForRead, readFile, readRange, replaceFile, writeAll } from './file-access.ts'
import { isBeingReplaced } from './file-lock.ts'
import { isCount, lastSegment, parseObject, segmentChain, segmentPath, type SegmentPart } from './file-log.ts'
import type { NumberedEvent } from './open-writers.ts'
import { sessionCorrupt, sessionTooNew } from './store.ts'
import { PAGE_CHARACTERS, type EventPage, type NumberedText } from './watch-events.ts'

// The events of a session, in one file per segment of its lines: `events-1.jsonl`, … A file is a header and then batches. A
// batch says how many bytes of the segment must be there for it to count: events are written before the lines of the same append,
// so that they count as soon as those lines do. A segment that follows says up to which event the ones before it count.
//
// Transient events of earlier turns do not count: `events-turn.txt` has the number of the event that started the last turn. The file
// is written again without them when they are most of it.

const VERSION = 1
const TURN = 'events-turn.txt'
const NEWLINE = 10
const MAX_HEADER_BYTES = 512
const MIN_WASTE_BYTES = 65_536

/** Where the events of a session end. */
export type EventsEnd = {
  /** A name that no other log has. Undefined if there are no events. */
  readonly log: string | undefined
  readonly seq: number
  /** The size of the file of the last segment, and how much of it is transient. */
  readonly bytes: number
  readonly transientBytes: number
}

export const noEvents: EventsEnd = { log: undefined, seq: 0, bytes: 0, transientBytes: 0 }

/** What the first line of a batch says. */
type About = {
  readonly first: number
  readonly count: number
  readonly bytes: number
  readonly transient: boolean
  /** How many bytes of the segment must be there. */
  readonly at: number
  /** The lock of the writer. */
  readonly epoch: number
}

type OpenFile = {
  readonly file: number
  readonly size: number
  /** The first line. It is different if the file was written again. */
  readonly header: string
  readonly log: string
}

type Page = { readonly after: number; readonly turn: number; readonly events: NumberedText[]; characters: number }

/** Reads the events of a session, from place to place. */
export class EventsReader {
  readonly #id: string
  readonly #folder: string
  #log: string | undefined
  #place = { segment: 0, header: '', offset: 0 }
  #transientBytes = 0
  #last = 0
  /** How much of the last segment counts, if it is known. */
  #until: number | undefined

  constructor(id: string, folder: string) {
    this.#id = id
    this.#folder = folder
  }

  /** The next events after a number. Undefined if there is no such session, or another one since the last call. */
  read(after: number): EventPage | undefined {
    const last = lastSegment(this.#id, this.#folder)
    if (last === undefined) return undefined
    const page: Page = { after, turn: readTurn(this.#id, this.#folder), events: [], characters: 0 }
    let isFound = false
    for (const part of segmentChain(this.#id, this.#folder, last)) {
      if (part.segment < this.#place.segment) continue
      if (this.#last >= (part.event ?? Infinity)) {
        isFound ||= isThere(eventsPath(this.#folder, part.segment))
        continue
      }
      const found = this.#open(part.segment)
      if (found === undefined) continue
      try {
        if (found.log !== (this.#log ??= found.log)) return undefined
        isFound = true
        this.#goTo(part.segment, found)
        while (page.characters < PAGE_CHARACTERS && this.#readBatches(found, part, page));
      } finally {
        fs().closeSync(found.file)
      }
      if (page.characters >= PAGE_CHARACTERS) break
    }
    // The log that was there is gone: the session was deleted and created again.
    if (this.#log !== undefined && !isFound) return undefined
    const more = page.characters >= PAGE_CHARACTERS
    return { session: this.#id, events: page.events, more, last: this.#last }
  }

  /** Reads all events, for the owner of the lock. `isWhole` is false if something follows them in the file of this segment that does not count. */
  toEnd({
    segment,
    bytes: until,
  }: {
    readonly segment: number
    readonly bytes: number
  }): EventsEnd & { readonly isWhole: boolean } {
    this.#until = until
    let isDamaged = false
    try {
      this.read(Infinity)
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'SESSION_CORRUPT') throw error
      isDamaged = true // the session can be continued: what follows the last event that was read does not count
    }
    const size = fs().lstatSync(eventsPath(this.#folder, segment), { throwIfNoEntry: false })?.size ?? 0
    const bytes = this.#place.segment === segment ? this.#place.offset : 0
    return {
      log: this.#log,
      seq: this.#last,
      bytes,
      transientBytes: this.#place.segment === segment ? this.#transientBytes : 0,
      isWhole: bytes === size && !isDamaged,
    }
  }

  #open(segment: number): OpenFile | undefined {
    const file = openForRead(this.#id, eventsPath(this.#folder, segment))
    if (file === undefined) return undefined
    try {
      const start = readRange(file, { from: 0, limit: MAX_HEADER_BYTES })
      const header = start.subarray(0, start.indexOf(NEWLINE) + 1).toString('utf8')
      const { hookloop, version, segment: of, log } = parseObject(header) ?? {}
      if (hookloop === 'events' && typeof version === 'number' && version > VERSION)
        throw sessionTooNew(this.#id, version, VERSION)
      if (hookloop !== 'events' || version !== VERSION || of !== segment || typeof log !== 'string')
        throw this.#corrupt(segment, 'does not start with a header')
      return { file, size: fs().fstatSync(file).size, header, log }
    } catch (error) {
      fs().closeSync(file)
      throw error
    }
  }

  #goTo(segment: number, { header, size }: OpenFile): void {
    const isSame = this.#place.segment === segment && this.#place.header === header
    if (!isSame) {
      if (this.#place.segment === segment) this.#last = 0 // it was written again
      this.#place = { segment, header, offset: Buffer.byteLength(header) }
      this.#transientBytes = 0
    }
    if (size < this.#place.offset) throw this.#corrupt(segment, 'was truncated')
  }

  /** Reads batches from the current place on that are complete and count. False if there is none. */
  #readBatches(of: OpenFile, { segment, until, event = Infinity }: SegmentPart, page: Page): boolean {
    const { offset } = this.#place
    let bytes = readRange(of.file, { from: offset, limit: PAGE_CHARACTERS })
    const first = this.#about(bytes, 0)
    if (first !== undefined && first.end > bytes.length && offset + first.end <= of.size)
      bytes = readRange(of.file, { from: offset, limit: first.end })
    const known = until ?? this.#until
    const limit = known ?? fs().lstatSync(segmentPath(this.#folder, segment)).size // after the events were read
    const isReplaced = known === undefined ? isBeingReplaced(this.#id, this.#folder) : () => false
    for (let at = 0; ;) {
      const found = this.#last >= event ? undefined : this.#about(bytes, at)
      if (found === undefined || found.end > bytes.length) break
      const { about, begin, end } = found
      if (about.at > limit || about.first > event || isReplaced(about.epoch)) break
      if (about.first <= this.#last || bytes[end - 1] !== NEWLINE) throw this.#corrupt(segment, WRONG)
      this.#add(about, bytes.subarray(begin, end - 1), page)
      this.#place = { ...this.#place, offset: offset + end }
      at = end
    }
    return this.#place.offset > offset
  }

  #add(about: About, bytes: Buffer, page: Page): void {
    this.#last = about.first + about.count - 1
    if (about.transient) this.#transientBytes += about.bytes
    if (this.#last <= page.after || (about.transient && this.#last < page.turn)) return
    const texts = process.getBuiltinModule('node:buffer').isUtf8(bytes) ? bytes.toString('utf8').split('\n') : []
    if (texts.length !== about.count) throw this.#corrupt(this.#place.segment, WRONG)
    page.characters += bytes.length
    for (const [i, text] of texts.entries())
      if (about.first + i > page.after) page.events.push({ seq: about.first + i, text })
  }

  /** Undefined if the first line of the batch is not complete yet. */
  #about(bytes: Buffer, at: number): { about: About; begin: number; end: number } | undefined {
    const begin = bytes.indexOf(NEWLINE, at) + 1
    if (begin === 0 && bytes.length - at > MAX_HEADER_BYTES) throw this.#corrupt(this.#place.segment, WRONG)
    if (begin === 0) return undefined
    const batch = parseObject(bytes.subarray(at, begin))?.['batch']
    const { first, count, bytes: length, at: needs, epoch, transient = false } = isJsonObject(batch) ? batch : {}
    const isPlace = isCount(first) && isCount(count) && isCount(length) && isCount(needs) && isCount(epoch)
    if (!isPlace || typeof transient !== 'boolean' || count === 0) throw this.#corrupt(this.#place.segment, WRONG)
    return { about: { first, count, bytes: length, at: needs, epoch, transient }, begin, end: begin + length }
  }

  #corrupt(segment: number, what: string): Error {
    return sessionCorrupt(this.#id, `${eventsPath(this.#folder, segment)} ${what}`)
  }
}

const WRONG = 'has a batch that does not say what it has'

type Place = {
  readonly id: string
  readonly folder: string
  readonly segment: number
  readonly epoch: number
  readonly sync: boolean
}

/** Writes the events of a session that is locked. */
export class EventsWriter {
  readonly #of: Place
  #end: EventsEnd
  #file: number | undefined

  constructor(of: Place, end: EventsEnd) {
    this.#of = of
    this.#end = end
  }

  get end(): EventsEnd {
    return this.#end
  }

  /** Writes events that count when the segment has so many bytes. */
  append(events: readonly NumberedEvent[], at: number): void {
    const { id, folder, segment, epoch, sync } = this.#of
    const path = eventsPath(folder, segment)
    if (this.#end.bytes === 0) this.#create(path)
    this.#file ??= openForAppend(id, path)
    let { bytes, transientBytes, seq } = this.#end
    let text = ''
    for (const row of eventRows(events)) {
      const length = Buffer.byteLength(row.text) + 1
      const about = { first: row.first, count: row.count, bytes: length, at, epoch }
      text += `${JSON.stringify({ batch: row.transient ? { ...about, transient: true } : about })}\n${row.text}\n`
      if (row.transient) transientBytes += length
      seq = row.first + row.count - 1
    }
    bytes += writeAll(this.#file, text)
    if (sync) fs().fdatasyncSync(this.#file)
    this.#end = { ...this.#end, seq, bytes, transientBytes }
  }

  /** Whether the file is as it was written. */
  isIntact(): boolean {
    if (this.#file === undefined) return true
    const found = fs().lstatSync(eventsPath(this.#of.folder, this.#of.segment), { throwIfNoEntry: false })
    return found?.size === this.#end.bytes && found.ino === fs().fstatSync(this.#file).ino
  }

  /** Deletes the transient events before the one that starts a turn. */
  startTurn(seq: number): void {
    const { folder, epoch } = this.#of
    const path = process.getBuiltinModule('node:path').join(folder, TURN)
    replaceFile(path, `${seq}\n`, { temporary: `${path}.${epoch}`, sync: false })
    const { bytes, transientBytes } = this.#end
    if (transientBytes > MIN_WASTE_BYTES && transientBytes > bytes / 2) this.#rewrite(seq)
  }

  close(): void {
    if (this.#file !== undefined) fs().closeSync(this.#file)
    this.#file = undefined
  }

  #create(path: string): void {
    const log = this.#end.log ?? crypto.randomUUID()
    const text = this.#header(log)
    replaceFile(path, text, { temporary: `${path}.${this.#of.epoch}`, sync: this.#of.sync })
    this.#end = { ...this.#end, log, bytes: Buffer.byteLength(text), transientBytes: 0 }
  }

  #header(log: string): string {
    const { segment } = this.#of
    const file = crypto.randomUUID()
    return `${JSON.stringify({ hookloop: 'events', version: VERSION, segment, log, file })}\n`
  }

  #rewrite(turn: number): void {
    const { id, folder, segment, epoch, sync } = this.#of
    const path = eventsPath(folder, segment)
    const found = readFile(id, path)!
    const kept: Buffer[] = [Buffer.from(this.#header(this.#end.log!))]
    let transientBytes = 0
    for (let at = found.indexOf(NEWLINE) + 1; at < found.length;) {
      const begin = found.indexOf(NEWLINE, at) + 1
      const { batch } = JSON.parse(found.subarray(at, begin).toString('utf8')) as { readonly batch: About }
      const end = begin + batch.bytes
      if (!batch.transient || batch.first > turn) kept.push(found.subarray(at, end))
      if (batch.transient && batch.first > turn) transientBytes += batch.bytes
      at = end
    }
    const text = Buffer.concat(kept)
    this.close()
    replaceFile(path, text, { temporary: `${path}.${epoch}`, sync })
    this.#file = openForAppend(id, path)
    this.#end = { ...this.#end, bytes: text.length, transientBytes }
  }
}

export function eventsPath(folder: string, segment: number): string {
  return process.getBuiltinModule('node:path').join(folder, `events-${segment}.jsonl`)
}

/** Changes when something is written to the session, and when a process dies that was taking over its lock. Undefined if there is none. */
export function sizesOf(id: string, folder: string): string | undefined {
  const names = namesIn(id, folder)
  const last = lastSegment(id, folder)
  if (names === undefined || last === undefined) return undefined
  const size = (path: string): number => fs().lstatSync(path, { throwIfNoEntry: false })?.size ?? -1
  const isUnclear = isBeingReplaced(id, folder)(0)
  return `${names.join(' ')} ${size(segmentPath(folder, last))} ${size(eventsPath(folder, last))} ${isUnclear}`
}

function isThere(path: string): boolean {
  return fs().lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function readTurn(id: string, folder: string): number {
  const text = readFile(id, process.getBuiltinModule('node:path').join(folder, TURN), { limit: 32 })
  const turn = Number(text?.toString('latin1') ?? 0)
  return isCount(turn) ? turn : 0
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}
