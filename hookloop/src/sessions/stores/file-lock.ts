import { createFileWith, namesIn, readFile, writeAll } from './file-access.ts'
import {
  describeLockOwner,
  isLocked,
  newLockOwner,
  parseLockOwner,
  toLease,
  toSessionLock,
  type LockState,
} from './lock-owner.ts'
import { sessionBusy, sessionCorrupt, type SessionLock } from './store.ts'

// A session is locked by files that only one process can create: `1.lock`, `2.lock`, … The highest number, the epoch, has the
// lock. To lock a session, a process checks whether the owner of the highest number still writes, and if not creates the next
// one. A writer looks for a higher number after each write: if there is none, a process that locks the session later reads it
// later, and so sees what was written.

const LOCK = /^([1-9]\d{0,14})\.lock$/
/** Lock files, requests to stop, and temporary files of processes that died. */
const LEFT_BEHIND =
  /^(?:(\d{1,15})\.lock(?:\.[\w-]+)?|(\d{1,15})\.jsonl\.new|stop-(\d{1,15})\.json(?:\.[\w-]+)?|(?:head\.json|events-turn\.txt|events-\d{1,15}\.jsonl)\.(\d{1,15}))$/
const LAST_EPOCH = 999_999_999_999_999
const MAX_LOCK_BYTES = 4096
const MAX_ATTEMPTS = 16

export type FileLock = {
  readonly epoch: number
  /** A unique name. */
  readonly token: string
  /** Whether the previous owner released the lock in order, so that it will not write any more. */
  readonly clean: boolean
  /** `taken`: another process has taken over the lock. `missing`: its file was deleted, and there is no other lock. */
  state(): 'latest' | 'taken' | 'missing'
  renew(): void
  /** Ends the lock: `released` in order, or `left` with a segment that the next owner must not append to. */
  end(how: 'released' | 'left'): void
  /** Removes the lock as if it had never existed, if nothing was written. */
  withdraw(): void
}

/** Locks the session in a folder, or throws SESSION_BUSY. */
export function lockSession(id: string, folder: string, leaseMs: number): FileLock {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const before = latestLock(id, folder)
    if (before !== undefined && before.ended === undefined && isLocked(before))
      throw sessionBusy(id, describeLockOwner(before.owner))
    const lock = createLock(id, folder, { before, leaseMs })
    if (lock !== undefined) return lock
  }
  throw sessionBusy(id, 'several other processes')
}

/** The process that has the session in a folder locked now, if one has. */
export function sessionLock(id: string, folder: string): SessionLock | undefined {
  const lock = latestLock(id, folder)
  return lock !== undefined && lock.ended === undefined && isLocked(lock) ? toSessionLock(lock.owner) : undefined
}

/** The number of the latest lock; 0 if there was none. */
export function latestEpoch(id: string, folder: string): number {
  return Math.max(0, ...epochsOf(id, folder))
}

/**
 * Whether the writer with a lock number has lost its lock to a process that has not said yet what still counts. After a lock
 * that was released in order, everything does.
 */
export function isBeingReplaced(id: string, folder: string): (epoch: number) => boolean {
  const latest = latestEpoch(id, folder)
  let isUnclear: boolean | undefined
  return (epoch) => {
    if (epoch >= latest) return false
    if (isUnclear !== undefined) return isUnclear
    const lock = latestLock(id, folder)
    return (isUnclear = lock !== undefined && !lock.clean && lock.ended === undefined && isLocked(lock))
  }
}

type FoundLock = LockState & {
  readonly epoch: number
  readonly text: string
  readonly ended: 'released' | 'left' | undefined
  readonly clean: boolean
}

function latestLock(id: string, folder: string): FoundLock | undefined {
  const epoch = latestEpoch(id, folder)
  if (epoch >= LAST_EPOCH) throw sessionCorrupt(id, `its lock number ${epoch} is the last one`)
  if (epoch === 0) return undefined
  const path = lockPath(folder, epoch)
  const text = readFile(id, path, { limit: MAX_LOCK_BYTES })?.toString('utf8')
  const found = fs().lstatSync(path, { throwIfNoEntry: false })
  if (text === undefined || found === undefined) return latestLock(id, folder) // it has just been removed
  const [first, ended] = text.split('\n')
  const owner = parseLockOwner(first)
  const { leaseMs, clean } = owner === undefined ? {} : (JSON.parse(first!) as { leaseMs?: unknown; clean?: unknown })
  return {
    epoch,
    text,
    owner,
    renewedAt: found.mtimeMs,
    leaseMs: toLease(leaseMs),
    clean: clean !== false,
    ended: ended === 'released' || ended === 'left' ? ended : undefined,
  }
}

function createLock(
  id: string,
  folder: string,
  { before, leaseMs }: { readonly before: FoundLock | undefined; readonly leaseMs: number },
): FileLock | undefined {
  const epoch = (before?.epoch ?? 0) + 1
  const path = lockPath(folder, epoch)
  const owner = newLockOwner()
  const clean = before === undefined || before.ended === 'released'
  const text = `${JSON.stringify({ ...owner, leaseMs, clean })}\n`
  const file = createFileWith(path, text, { temporary: `${path}.${owner.token}` })
  if (file === undefined) return undefined
  const { ino } = fs().fstatSync(file)
  const isOwn = (): boolean => fs().lstatSync(path, { throwIfNoEntry: false })?.ino === ino
  const withdraw = (): void => {
    if (isOwn()) fs().unlinkSync(path)
    fs().closeSync(file)
  }
  try {
    // Since then other processes may have locked and released it, or the session was deleted and created again.
    const now = before && readFile(id, lockPath(folder, before.epoch), { limit: MAX_LOCK_BYTES })?.toString('utf8')
    if (now !== before?.text || Math.max(...epochsOf(id, folder)) !== epoch) {
      withdraw()
      return undefined
    }
  } catch (error) {
    withdraw()
    throw error
  }
  return {
    epoch,
    token: owner.token,
    clean,
    // In this order: old locks are removed from the lowest up, so if the next one is gone, this one is gone as well.
    state: () => {
      if (fs().lstatSync(lockPath(folder, epoch + 1), { throwIfNoEntry: false }) !== undefined) return 'taken'
      if (isOwn()) return 'latest'
      return epochsOf(id, folder).length === 0 ? 'missing' : 'taken'
    },
    renew: () => fs().futimesSync(file, new Date(), new Date()),
    end: (how) => {
      try {
        writeAll(file, `${how}\n`)
      } catch {
        // Then its lease expires.
      }
      fs().closeSync(file)
    },
    withdraw,
  }
}

/** Removes what earlier owners left in the folder, from the lowest epoch up. */
export function removeOldLocks(id: string, folder: string, epoch: number): void {
  const names = namesIn(id, folder) ?? []
  const older = names.flatMap((name) => {
    const of = Number(
      LEFT_BEHIND.exec(name)
        ?.slice(1)
        .find((epoch) => epoch !== undefined) ?? Infinity,
    )
    return of < epoch ? [{ name, of }] : []
  })
  const path = process.getBuiltinModule('node:path')
  for (const { name } of older.toSorted((a, b) => a.of - b.of)) fs().rmSync(path.join(folder, name), { force: true })
}

function epochsOf(id: string, folder: string): readonly number[] {
  return (namesIn(id, folder) ?? []).flatMap((name) => {
    const [, epoch] = LOCK.exec(name) ?? []
    return epoch === undefined ? [] : [Number(epoch)]
  })
}

function lockPath(folder: string, epoch: number): string {
  return process.getBuiltinModule('node:path').join(folder, `${epoch}.lock`)
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}
