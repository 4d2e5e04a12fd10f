import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { AgentError, messageOf } from '../../errors.ts'
import {
  isMissing,
  makeFolder,
  namesIn,
  openForAppend,
  readFile,
  replaceFile,
  syncFolder,
  writeAll,
} from './file-access.ts'
import { lockSession, removeOldLocks, type SessionLock } from './file-lock.ts'
import { batchText, readLog, segmentHeader, segmentPath, tipOf, type Log } from './file-log.ts'
import { checkLease, renewLease } from './lock-owner.ts'
import {
  checkLines,
  checkSessionId,
  headText,
  readHead,
  sessionCorrupt,
  sessionFenced,
  sessionReleased,
  sessionUnknown,
  storeFailed,
  type ListedSession,
  type SessionStore,
  type SessionWriter,
} from './store.ts'

export type FileStoreOptions = {
  /** `full` waits for the disk, and survives a loss of power; `normal` survives the death of the process. */
  readonly durability?: 'normal' | 'full'
  /** How long a writer that cannot be looked at may be silent before its session is taken over. 30 seconds. */
  readonly leaseMs?: number
}

type Settings = { readonly sync: boolean; readonly leaseMs: number }

const HEAD = 'head.json'
const DELETED = '.deleted-'
const ATTEMPTS = 8

/**
 * Sessions as files, a folder each, for the processes of one machine. The folder must not be on a network: files that two
 * machines see at different times cannot keep two writers apart.
 */
export function fileStore(folder: string, options: FileStoreOptions = {}): SessionStore {
  const settings = { sync: options.durability === 'full', leaseMs: checkLease(options.leaseMs) }
  const root = path().resolve(folder)
  const open = new Set<SessionWriter>()
  const folderOf = (id: string): string => path().join(root, checkSessionId(id))
  return {
    async open(id, { create = false } = {}) {
      const own = folderOf(id)
      return attempt(id, () => {
        if (create) makeFolder(own)
        else if (tipOf(id, own) === undefined && readSession(id, own) === undefined) throw sessionUnknown(id)
        const writer = openWriter(id, own, { ...settings, onRelease: () => void open.delete(writer) })
        open.add(writer)
        return writer
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
    async close() {
      for (const writer of open) await writer.release()
    },
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

/** A session may be deleted, and made anew, while it is looked at: if something is missing, it is looked for again. */
function attempt<T>(id: string, work: () => T): T {
  for (let left = ATTEMPTS; ; left--) {
    try {
      return work()
    } catch (error) {
      const missing = isMissing(error) || (error instanceof AgentError && isMissing(error.cause))
      if (left === 0 || !missing) throw storeFailed(`The session "${id}" cannot be read or written`, error)
    }
  }
}

function openWriter(
  id: string,
  folder: string,
  settings: Settings & { readonly onRelease: () => void },
): SessionWriter {
  const lock = lockSession(id, folder, settings.leaseMs)
  try {
    const log = readSession(id, folder)
    const goesOn = log !== undefined && lock.clean && !log.tip.torn
    const tip = goesOn ? log.tip : beginSegment(folder, { segment: lock.epoch, log, sync: settings.sync })
    const file = openForAppend(id, segmentPath(folder, tip.segment))
    removeOldLocks(id, folder, lock.epoch)
    return fileWriter({ id, folder, lock, file, tip, log, ...settings })
  } catch (error) {
    lock.withdraw()
    throw error
  }
}

function beginSegment(
  folder: string,
  { segment, log, sync }: { readonly segment: number; readonly log: Log | undefined; readonly sync: boolean },
): { readonly segment: number; readonly bytes: number } {
  const text = segmentHeader(segment, log && { segment: log.tip.segment, bytes: log.tip.bytes })
  const target = segmentPath(folder, segment)
  replaceFile(target, text, { temporary: `${target}.new`, sync })
  if (sync) for (const each of [folder, path().dirname(folder)]) syncFolder(each)
  return { segment, bytes: Buffer.byteLength(text) }
}

function fileWriter(of: {
  readonly id: string
  readonly folder: string
  readonly lock: SessionLock
  readonly file: number
  readonly tip: { readonly segment: number; readonly bytes: number }
  readonly log: Log | undefined
  readonly sync: boolean
  readonly leaseMs: number
  readonly onRelease: () => void
}): SessionWriter {
  const { id, folder, lock, file } = of
  let state: 'open' | 'failed' | 'fenced' | 'released' = 'open'
  let bytes = of.tip.bytes
  let head = of.log?.head
  const saveHead = (): void => {
    try {
      const text = JSON.stringify({ segment: of.tip.segment, bytes, head: head ?? {} })
      replaceFile(path().join(folder, HEAD), text, {
        temporary: path().join(folder, `${HEAD}.${lock.epoch}`),
        sync: false,
      })
    } catch {
      // It saves a list from reading the whole session, no more.
    }
  }
  const stop = renewLease(of.leaseMs, () => {
    try {
      lock.renew()
    } catch {
      // The lease runs out, and whoever takes the session over fences this writer.
    }
  })
  return {
    lines: of.log?.lines ?? [],
    append(lines, newHead) {
      if (state === 'released') throw sessionReleased(id)
      if (state === 'fenced') throw sessionFenced(id)
      if (state === 'failed') throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
      checkLines(lines)
      const kept = newHead === undefined ? undefined : headText(newHead)
      if (lines.length === 0 && kept === undefined) return
      try {
        bytes += writeAll(file, batchText(lines, kept))
        if (of.sync) fs().fdatasyncSync(file)
        if (!lock.isLatest()) state = 'fenced'
      } catch (error) {
        state = 'failed' // nothing is added to half a batch: the next writer begins a file of its own
        throw storeFailed(`The session "${id}" cannot be written`, error)
      }
      if (state === 'fenced') throw sessionFenced(id)
      if (kept !== undefined) head = readHead(id, kept)
    },
    async release() {
      if (state === 'released') return
      const inOrder = state === 'open' && isLatest(lock)
      state = 'released'
      stop()
      of.onRelease()
      if (inOrder) saveHead() // not before: it would not be that of the next line
      fs().closeSync(file)
      lock.end(inOrder ? 'released' : 'left')
    },
  }
}

function isLatest(lock: SessionLock): boolean {
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
    return undefined // something else that lies in the folder
  }
  let updatedAt = 0
  try {
    return attempt(id, () => {
      const tip = tipOf(id, folder)
      const file = tip === undefined ? undefined : fs().lstatSync(segmentPath(folder, tip), { throwIfNoEntry: false })
      updatedAt = file?.mtimeMs ?? 0
      const head = file && savedHead(id, folder, { segment: tip!, bytes: file.size })
      if (head !== undefined) return { id, head, updatedAt }
      const log = readSession(id, folder)
      return log && { id, head: log.head ?? {}, updatedAt }
    })
  } catch (error) {
    return { id, head: {}, updatedAt, problem: messageOf(error) }
  }
}

/** The head that was saved beside the lines, if it is the one that belongs to them. */
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
    return undefined // it is only a copy
  }
}

/** Moved away as a whole first, so that nobody ever finds a part of it. */
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
    // Somebody else is at it as well, or the next one who deletes something will be.
  }
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}

function path(): typeof import('node:path') {
  return process.getBuiltinModule('node:path')
}
