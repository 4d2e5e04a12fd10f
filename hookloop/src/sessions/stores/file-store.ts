import { isJsonObject, type JsonObject } from '../../state/json.ts'
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
import { batchText, lastSegment, readLog, segmentHeader, segmentPath, type Log } from './file-log.ts'
import { checkLease } from './lock-owner.ts'
import { OpenWriters, type LockedLines } from './open-writers.ts'
import {
  checkSessionId,
  headNow,
  readHead,
  sessionCorrupt,
  sessionFenced,
  sessionUnknown,
  storeFailed,
  type ListedSession,
  type SessionStore,
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
  const settings = { sync: options.durability === 'full', leaseMs: checkLease(options.leaseMs) }
  const root = path().resolve(folder)
  const writers = new OpenWriters(settings.leaseMs)
  const folderOf = (id: string): string => path().join(root, checkSessionId(id))
  return {
    async open(id, { create = false } = {}) {
      const own = folderOf(id)
      return attempt(id, () => {
        if (create) createFolder(own)
        else if (lastSegment(id, own) === undefined && readSession(id, own) === undefined) throw sessionUnknown(id)
        return writers.add(openSession(id, own, settings))
      })
    },
    async read(id) {
      const own = folderOf(id)
      return attempt(id, () => {
        const log = readSession(id, own)
        return log && { head: log.head ?? {}, lines: log.lines }
      })
    },
    async list() {
      const listed = namesInStore(root).flatMap((name) => listSession(name, path().join(root, name)) ?? [])
      return listed
        .toSorted((a, b) => b.updatedAt - a.updatedAt)
        .map((each) => ({ ...each, updatedAt: Math.trunc(each.updatedAt) }))
    },
    async delete(id) {
      const own = folderOf(id)
      attempt(id, () => {
        if (namesIn(id, own) !== undefined) deleteSession(id, own, settings)
      })
    },
    close: () => writers.close(),
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
    const log = readSession(id, folder)
    const canAppend = log !== undefined && lock.clean && !log.end.torn
    const end = canAppend ? log.end : startSegment(folder, { segment: lock.epoch, log, sync: settings.sync })
    const file = openForAppend(id, segmentPath(folder, end.segment))
    removeOldLocks(id, folder, lock.epoch)
    return lockedLines({ id, folder, lock, file, end, log, sync: settings.sync })
  } catch (error) {
    lock.withdraw()
    throw error
  }
}

function startSegment(
  folder: string,
  { segment, log, sync }: { readonly segment: number; readonly log: Log | undefined; readonly sync: boolean },
): { readonly segment: number; readonly bytes: number } {
  const text = segmentHeader(segment, log && { segment: log.end.segment, bytes: log.end.bytes })
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
  readonly log: Log | undefined
  readonly sync: boolean
}): LockedLines {
  const { id, folder, lock, file } = of
  let state: 'open' | 'failed' | 'fenced' = 'open'
  let bytes = of.end.bytes
  let head = of.log?.head
  const saveHead = (): void => {
    try {
      const text = JSON.stringify({ segment: of.end.segment, bytes, head: head ?? {} })
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
    lines: of.log?.lines ?? [],
    append(lines, newHead) {
      if (state === 'fenced') throw sessionFenced(id)
      if (state === 'failed') throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
      try {
        bytes += writeAll(file, batchText(lines, newHead))
        if (of.sync) fs().fdatasyncSync(file)
        if (!lock.isLatest()) state = 'fenced'
      } catch (error) {
        state = 'failed' // nothing may follow half a batch: the next writer starts a new segment
        throw storeFailed(`The session "${id}" cannot be written`, error)
      }
      if (state === 'fenced') throw sessionFenced(id)
      if (newHead !== undefined) head = readHead(id, newHead)
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

function isLatest(lock: FileLock): boolean {
  try {
    return lock.isLatest()
  } catch {
    return false
  }
}

function readSession(id: string, folder: string): Log | undefined {
  const log = readLog(id, folder)
  if (log === undefined && namesIn(id, folder)?.includes(HEAD)) throw sessionCorrupt(id, 'its lines are missing')
  return log
}

function listSession(id: string, folder: string): ListedSession | undefined {
  try {
    checkSessionId(id)
    const found = fs().lstatSync(folder, { throwIfNoEntry: false })
    if (found === undefined || found.isFile()) return undefined
  } catch {
    return undefined // not a session
  }
  let updatedAt = 0
  try {
    return attempt(id, () => {
      const last = lastSegment(id, folder)
      const file = last === undefined ? undefined : fs().lstatSync(segmentPath(folder, last), { throwIfNoEntry: false })
      updatedAt = file?.mtimeMs ?? 0
      const head = file && savedHead(id, folder, { segment: last!, bytes: file.size })
      const log = head === undefined ? readSession(id, folder) : { head }
      return log && { id, head: headNow(log.head ?? {}, isSessionLocked(id, folder)), updatedAt }
    })
  } catch (error) {
    return { id, head: {}, updatedAt, problem: messageOf(error) }
  }
}

/** The head that was saved beside the lines, if it is up to date. */
function savedHead(
  id: string,
  folder: string,
  now: { readonly segment: number; readonly bytes: number },
): JsonObject | undefined {
  try {
    const saved = readHead(id, readFile(id, path().join(folder, HEAD))?.toString('utf8'))
    const fits = saved['segment'] === now.segment && saved['bytes'] === now.bytes
    return fits && isJsonObject(saved['head']) ? saved['head'] : undefined
  } catch {
    return undefined // it is only a copy of what the lines say
  }
}

/** The folder is renamed first, so that no process ever finds a part of the session. */
function deleteSession(id: string, folder: string, settings: Settings): void {
  const lock = lockSession(id, folder, settings.leaseMs)
  const root = path().dirname(folder)
  try {
    fs().renameSync(folder, path().join(root, `${DELETED}${lock.token}`))
  } finally {
    lock.end('left')
  }
  if (settings.sync) syncFolder(root)
  for (const name of fs().readdirSync(root)) if (name.startsWith(DELETED)) removeFolder(path().join(root, name))
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
