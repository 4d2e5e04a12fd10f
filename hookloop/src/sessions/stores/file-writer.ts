import { AgentError } from '../../errors.ts'
import type { StopRequest } from '../../state/stop-request.ts'
import { EventsReader, EventsWriter, eventsPath, noEvents, type EventsEnd } from './file-events.ts'
import { openForAppend, replaceFile, syncFolder, writeAll } from './file-access.ts'
import { lockSession, removeOldLocks, type FileLock } from './file-lock.ts'
import { batchText, segmentHeader, segmentPath } from './file-log.ts'
import { changePages } from './file-pages.ts'
import { currentEnd, HEAD, readPart, type End } from './file-reader.ts'
import { removeStop, takeStop } from './file-stops.ts'
import type { LockedLines } from './open-writers.ts'
import { isOpenStatus, readHead, sessionFenced, storeFailed } from './store.ts'

export type Settings = { readonly sync: boolean; readonly leaseMs: number }

/** Locks the session in a folder and opens it for appending. */
export function openSession(id: string, folder: string, settings: Settings): LockedLines {
  const lock = lockSession(id, folder, settings.leaseMs)
  try {
    const found = currentEnd(id, folder)
    const events = found === undefined ? { ...noEvents, isWhole: true } : eventsAt(id, folder, found)
    const canAppend = found !== undefined && lock.clean && !found.torn && events.isWhole
    const { sync } = settings
    const end = canAppend ? found : startSegment(folder, { segment: lock.epoch, after: found, event: events.seq, sync })
    const file = openForAppend(id, segmentPath(folder, end.segment))
    const stop = takeStop(id, folder, { epoch: lock.epoch, isOpen: isOpenStatus(found?.head['status']), sync })
    removeOldLocks(id, folder, lock.epoch)
    const of = { id, folder, segment: end.segment, epoch: lock.epoch, sync }
    const log = new EventsWriter(of, canAppend ? events : { ...events, bytes: 0, transientBytes: 0 })
    return lockedLines({ id, folder, lock, file, end, found, stop, events: log, sync })
  } catch (error) {
    lock.withdraw()
    throw error
  }
}

/** Where the events of a session end; `isWhole` if nothing follows them. */
function eventsAt(id: string, folder: string, end: End): EventsEnd & { readonly isWhole: boolean } {
  return end.events === undefined ? new EventsReader(id, folder).toEnd(end) : { ...end.events, isWhole: true }
}

function startSegment(
  folder: string,
  {
    segment,
    after,
    event,
    sync,
  }: {
    readonly segment: number
    readonly after: End | undefined
    readonly event: number
    readonly sync: boolean
  },
): { readonly segment: number; readonly bytes: number } {
  const text = segmentHeader(segment, after && { segment: after.segment, bytes: after.bytes, event })
  const target = segmentPath(folder, segment)
  replaceFile(target, text, { temporary: `${target}.new`, sync })
  if (sync) for (const each of [folder, path().dirname(folder)]) syncFolder(each)
  return { segment, bytes: Buffer.byteLength(text) }
}

function lockedLines(of: {
  readonly id: string
  readonly folder: string
  readonly lock: FileLock
  readonly file: number
  readonly end: { readonly segment: number; readonly bytes: number }
  readonly found: End | undefined
  readonly stop: StopRequest | undefined
  readonly events: EventsWriter
  readonly sync: boolean
}): LockedLines {
  const { id, folder, lock, file, found } = of
  const { segment } = of.end
  let state: 'open' | 'failed' | 'fenced' = 'open'
  let [bytes, lines, head, mark] = [of.end.bytes, found?.lines ?? 0, found?.head ?? {}, found?.mark]
  const saveHead = (): void => {
    try {
      const text = JSON.stringify({ segment, bytes, lines, ...(mark && { mark }), head, events: of.events.end })
      replaceFile(path().join(folder, HEAD), text, {
        temporary: path().join(folder, `${HEAD}.${lock.epoch}`),
        sync: false,
      })
    } catch {
      // It only saves `list` from reading the complete session.
    }
  }
  return {
    id,
    head,
    length: lines,
    eventSeq: of.events.end.seq,
    stop: of.stop,
    read: (options) => readPart(id, folder, options) ?? { head, lines: [] },
    append({ lines: added, head: newHead, endsRun, pages, events, startsTurn }) {
      if (state === 'fenced') throw sessionFenced(id)
      if (state === 'failed') throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
      try {
        if (pages !== undefined) changePages(id, folder, { ...pages, epoch: lock.epoch, sync: of.sync })
        const begin = { segment, bytes, line: lines }
        const hasLines = added.length > 0 || newHead !== undefined || pages !== undefined
        const batch = hasLines ? Buffer.from(batchText(added, newHead?.text)) : undefined
        bytes += batch?.length ?? 0
        if (events.length > 0) of.events.append(events, bytes)
        if (batch !== undefined) writeAll(file, batch)
        lines += added.length
        if (pages !== undefined) mark = begin
        if (of.sync && batch !== undefined) fs().fdatasyncSync(file)
        checkStored(id, folder, { file, segment, bytes, lock: lock.state(), events: of.events })
        if (startsTurn !== undefined) of.events.startTurn(startsTurn)
        if (endsRun) removeStop(folder, lock.epoch)
      } catch (error) {
        const isFenced = error instanceof AgentError && error.code === 'SESSION_FENCED'
        state = isFenced ? 'fenced' : 'failed' // nothing may follow half a batch: the next writer starts a new segment
        throw storeFailed(`The session "${id}" cannot be written`, error)
      }
      if (newHead !== undefined) head = readHead(id, newHead.text)
    },
    renew: () => lock.renew(),
    unlock() {
      const inOrder = state === 'open' && isLatest(lock)
      if (inOrder) saveHead() // only now: with each append it would be outdated by the next line
      fs().closeSync(file)
      of.events.close()
      lock.end(inOrder ? 'released' : 'left')
    },
  }
}

/** Checks that what was written is where a reader looks for it, and that no other process writes there. */
function checkStored(
  id: string,
  folder: string,
  at: {
    readonly file: number
    readonly segment: number
    readonly bytes: number
    readonly lock: ReturnType<FileLock['state']>
    readonly events: EventsWriter
  },
): void {
  if (at.lock === 'taken') throw sessionFenced(id)
  const path = segmentPath(folder, at.segment)
  const found = fs().lstatSync(path, { throwIfNoEntry: false })
  const isOwn = found?.ino === fs().fstatSync(at.file).ino
  const isWhole = isOwn && found.size === at.bytes && at.lock === 'latest'
  if (isWhole && at.events.isIntact()) return
  const what =
    found === undefined || at.lock === 'missing'
      ? `${folder}, or a file in it, was deleted or moved`
      : isWhole
        ? `${eventsPath(folder, at.segment)} was deleted, truncated or changed`
        : isOwn
          ? `${path} has ${found.size} bytes instead of ${at.bytes}: it was truncated or changed`
          : `${path} was replaced by another file`
  throw new AgentError('STORE_FAILED', `The session "${id}" cannot be written: ${what} while it was in use.`, {
    value: path,
  })
}

function isLatest(lock: FileLock): boolean {
  try {
    return lock.state() === 'latest'
  } catch {
    return false
  }
}

function path(): typeof import('node:path') {
  return process.getBuiltinModule('node:path')
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}
