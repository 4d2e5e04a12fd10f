import { checkArgument, checkChoice, checkOptions } from '../../state/check-options.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { AgentError, messageOf } from '../../errors.ts'
import {
  isMissing,
  createFolder,
  namesIn,
  openForAppend,
  readFile,
  replaceFile,
  syncFolder,
  writeAll,
} from './file-access.ts'
import { isSessionLocked, lockSession, removeOldLocks, type FileLock } from './file-lock.ts'
import {
  batchText,
  checkSegments,
  isCount,
  lastSegment,
  readLog,
  segmentHeader,
  segmentPath,
  type Log,
  type Mark,
} from './file-log.ts'
import { changePages, readPages } from './file-pages.ts'
import { folderName, idOfFolder, writeIdFile } from './session-folders.ts'
import { checkLease } from './lock-owner.ts'
import { pageOf, pruneSessions } from './list-sessions.ts'
import { OpenWriters, type LockedLines } from './open-writers.ts'
import { changedText, retryChange, unlessBusy, type ValueChange } from './shared-value.ts'
import {
  checkSessionId,
  headNow,
  readHead,
  sessionCorrupt,
  sessionFenced,
  sessionUnknown,
  storeFailed,
  type ListedSession,
  type ReadOptions,
  type SessionStore,
  type StoredSession,
} from './store.ts'

/** Options of `fileStore`. */
export type FileStoreOptions = {
  /** `full` waits for the disk and survives a power loss; `normal` survives a crash of the process. Default `normal`. */
  readonly durability?: 'normal' | 'full'
  /** How long a lock stays in force after its owner last renewed it, if the owner cannot be checked. Default 30,000. */
  readonly leaseMs?: number
}

type Settings = { readonly sync: boolean; readonly leaseMs: number }

const HEAD = 'head.json'
const DELETED = '.deleted-'
const VALUES = '.value-'
const MAX_ATTEMPTS = 8

/**
 * A session store in a folder, for all processes of one machine: each session is a folder of JSON lines. It must not be on a
 * network drive, where two machines may see a lock file at different times.
 *
 * @example
 * const store = fileStore('.hookloop/sessions')
 * const agent = createAgent({ model, store })
 * await agent.run('Hello.', { session: 'chat-1' })
 */
export function fileStore(folder: string, options: FileStoreOptions = {}): SessionStore {
  checkOptions('fileStore', options, ['durability', 'leaseMs'])
  checkArgument('fileStore', ['folder', folder], typeof folder === 'string' && folder !== '', 'the path of a folder')
  checkChoice('fileStore', 'durability', options.durability ?? 'normal', ['normal', 'full'])
  const settings = { sync: options.durability === 'full', leaseMs: checkLease(options.leaseMs) }
  const root = path().resolve(folder)
  const writers = new OpenWriters(settings.leaseMs)
  const folderOf = (id: string): string => path().join(root, folderName(root, checkSessionId(id)))
  const store: SessionStore = {
    async open(id, { create = false } = {}) {
      const own = folderOf(id)
      await writers.releaseStale(id)
      return attempt(id, () => {
        if (create) createSession(id, own)
        else if (lastSegment(id, own) === undefined && readLines(id, own) === undefined) throw sessionUnknown(id)
        return writers.add(openSession(id, own, settings))
      })
    },
    async read(id, options = {}) {
      const own = folderOf(id)
      return attempt(id, () => readPart(id, own, options))
    },
    async list(given = {}) {
      const listed = namesInStore(root).flatMap((name) => listSession(name, path().join(root, name)) ?? [])
      return pageOf(
        listed.map((each) => ({ ...each, updatedAt: Math.trunc(each.updatedAt) })),
        given,
      )
    },
    async delete(id, { before = Infinity } = {}) {
      const own = folderOf(id)
      return attempt(id, () => namesIn(id, own) !== undefined && deleteSession(id, own, { ...settings, before }))
    },
    prune: (given) => pruneSessions(store, given),
    async update(name, change) {
      const own = path().join(root, `${VALUES}${folderName(root, checkSessionId(name))}`)
      return retryChange(name, () =>
        unlessBusy(() => attempt(name, () => changeValue(name, own, { ...settings, change }))),
      )
    },
    close: () => writers.close(),
  }
  return store
}

/** A value has a folder and a lock like a session. */
function changeValue(
  name: string,
  folder: string,
  { change, leaseMs, sync }: Settings & { readonly change: ValueChange },
): Json {
  createFolder(folder)
  const lock = lockSession(name, folder, leaseMs)
  try {
    const target = path().join(folder, 'value.json')
    const { text, value } = changedText(readFile(name, target)?.toString('utf8'), change)
    replaceFile(target, text, { temporary: `${target}.${lock.epoch}`, sync })
    removeOldLocks(name, folder, lock.epoch)
    return value
  } finally {
    lock.end('released')
  }
}

function namesInStore(root: string): readonly string[] {
  try {
    return fs().readdirSync(root)
  } catch (error) {
    if (isMissing(error)) return []
    throw storeFailed(`The store ${root} cannot be read`, error)
  }
}

/** A session may be deleted and created again while it is read: if a file is missing, everything is read again. */
function attempt<T>(id: string, work: () => T): T {
  for (let left = MAX_ATTEMPTS; ; left--) {
    try {
      return work()
    } catch (error) {
      const missing = isMissing(error) || (error instanceof AgentError && isMissing(error.cause))
      if (left === 0 || !missing) throw storeFailed(`The session "${id}" cannot be read or written`, error)
    }
  }
}

function openSession(id: string, folder: string, settings: Settings): LockedLines {
  const lock = lockSession(id, folder, settings.leaseMs)
  try {
    const found = currentEnd(id, folder)
    const canAppend = found !== undefined && lock.clean && !found.torn
    const end = canAppend ? found : startSegment(folder, { segment: lock.epoch, after: found, sync: settings.sync })
    const file = openForAppend(id, segmentPath(folder, end.segment))
    removeOldLocks(id, folder, lock.epoch)
    return lockedLines({ id, folder, lock, file, end, found, sync: settings.sync })
  } catch (error) {
    lock.withdraw()
    throw error
  }
}

function startSegment(
  folder: string,
  { segment, after, sync }: { readonly segment: number; readonly after: End | undefined; readonly sync: boolean },
): { readonly segment: number; readonly bytes: number } {
  const text = segmentHeader(segment, after && { segment: after.segment, bytes: after.bytes })
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
  readonly sync: boolean
}): LockedLines {
  const { id, folder, lock, file, found } = of
  const { segment } = of.end
  let state: 'open' | 'failed' | 'fenced' = 'open'
  let [bytes, lines, head, mark] = [of.end.bytes, found?.lines ?? 0, found?.head ?? {}, found?.mark]
  const saveHead = (): void => {
    try {
      const text = JSON.stringify({ segment, bytes, lines, ...(mark && { mark }), head })
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
    read: (options) => readPart(id, folder, options) ?? { head, lines: [] },
    append(added, newHead, pages) {
      if (state === 'fenced') throw sessionFenced(id)
      if (state === 'failed') throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
      try {
        if (pages !== undefined) changePages(id, folder, { ...pages, epoch: lock.epoch, sync: of.sync })
        const begin = { segment, bytes, line: lines }
        bytes += writeAll(file, batchText(added, newHead?.text))
        lines += added.length
        if (pages !== undefined) mark = begin
        if (of.sync) fs().fdatasyncSync(file)
        checkStored(id, folder, { file, segment, bytes, lock: lock.state() })
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
  },
): void {
  if (at.lock === 'taken') throw sessionFenced(id)
  const path = segmentPath(folder, at.segment)
  const found = fs().lstatSync(path, { throwIfNoEntry: false })
  const isOwn = found?.ino === fs().fstatSync(at.file).ino
  if (isOwn && found.size === at.bytes && at.lock === 'latest') return
  const what =
    found === undefined || at.lock === 'missing'
      ? `${folder}, or a file in it, was deleted or moved`
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

/** The lines of a session from the last mark on, if that is far enough, or all lines. */
function readLines(id: string, folder: string, after = -1): Log | undefined {
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

function readPart(id: string, folder: string, { after = -1, pages = false }: ReadOptions): StoredSession | undefined {
  const end = after === Infinity ? savedEnd(id, folder) : undefined
  const known = end !== undefined && isCurrent(id, folder, end) ? { first: 0, head: end.head, lines: [] } : undefined
  const log = known ?? readLines(id, folder, after)
  if (log === undefined) return undefined
  const part = { head: log.head ?? {}, lines: log.lines.slice(Math.max(0, after + 1 - log.first)) }
  return pages ? { ...part, pages: readPages(id, folder) } : part
}

/** Where a session ends: how many lines it has, and where the lines are that a reader usually starts with. */
type End = {
  readonly segment: number
  readonly bytes: number
  readonly torn: boolean
  readonly lines: number
  readonly head: JsonObject
  readonly mark: Mark | undefined
}

function currentEnd(id: string, folder: string): End | undefined {
  const saved = savedEnd(id, folder)
  if (saved !== undefined && isCurrent(id, folder, saved)) return saved
  const log = readLines(id, folder, Infinity)
  if (log === undefined) return undefined
  return { ...log.end, lines: log.first + log.lines.length, head: log.head ?? {}, mark: saved?.mark }
}

/** The end that was saved when the session was released, if it can be read. */
function savedEnd(id: string, folder: string): End | undefined {
  try {
    const saved = readHead(id, readFile(id, path().join(folder, HEAD))?.toString('utf8'))
    const { segment, bytes, lines, head, mark } = saved
    if (!isCount(segment) || !isCount(bytes) || !isCount(lines) || !isJsonObject(head)) return undefined
    const place = isJsonObject(mark) && isCount(mark['segment']) && isCount(mark['bytes']) && isCount(mark['line'])
    return { segment, bytes, lines, head, torn: false, mark: place ? (mark as Mark) : undefined }
  } catch {
    return undefined // it only saves reading the lines
  }
}

/** Whether nothing was written since the end was saved. Throws if a segment cannot be read. */
function isCurrent(id: string, folder: string, { segment, bytes }: End): boolean {
  if (lastSegment(id, folder) !== segment) return false
  checkSegments(id, folder, segment)
  return fs().lstatSync(segmentPath(folder, segment), { throwIfNoEntry: false })?.size === bytes
}

function createSession(id: string, folder: string): void {
  createFolder(folder)
  writeIdFile(id, folder)
}

function listSession(name: string, folder: string): ListedSession | undefined {
  const found = fs().lstatSync(folder, { throwIfNoEntry: false })
  const id = found === undefined || found.isFile() ? undefined : idOfFolder(name, folder)
  if (id === undefined) return undefined // not a session
  let updatedAt = 0
  try {
    return attempt(id, () => {
      const last = lastSegment(id, folder)
      const file = last === undefined ? undefined : fs().lstatSync(segmentPath(folder, last), { throwIfNoEntry: false })
      updatedAt = file?.mtimeMs ?? 0
      const end = currentEnd(id, folder)
      return end && { id, head: headNow(end.head, isSessionLocked(id, folder)), updatedAt }
    })
  } catch (error) {
    return { id, head: {}, updatedAt, problem: messageOf(error) }
  }
}

/** The folder is renamed first, so that no process ever finds a part of the session. */
function deleteSession(id: string, folder: string, settings: Settings & { readonly before: number }): boolean {
  const lock = lockSession(id, folder, settings.leaseMs)
  const root = path().dirname(folder)
  try {
    const last = lastSegment(id, folder)
    const file = last === undefined ? undefined : fs().lstatSync(segmentPath(folder, last), { throwIfNoEntry: false })
    if ((file?.mtimeMs ?? 0) >= settings.before) {
      lock.withdraw()
      return false
    }
    fs().renameSync(folder, path().join(root, `${DELETED}${lock.token}`))
  } catch (error) {
    lock.end('left')
    throw error
  }
  lock.end('left')
  if (settings.sync) syncFolder(root)
  for (const name of fs().readdirSync(root)) if (name.startsWith(DELETED)) removeFolder(path().join(root, name))
  return true
}

function removeFolder(folder: string): void {
  try {
    fs().rmSync(folder, { recursive: true, force: true })
  } catch {
    // Another process removes it as well, or the next `delete` does.
  }
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}

function path(): typeof import('node:path') {
  return process.getBuiltinModule('node:path')
}
