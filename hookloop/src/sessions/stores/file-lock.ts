import { createWhole, namesIn, readFile, writeAll } from './file-access.ts'
import { describeLockOwner, isLocked, newLockOwner, parseLockOwner, toLease, type LockState } from './lock-owner.ts'
import { sessionBusy, sessionCorrupt } from './store.ts'

// One writer at a time, by files that only one process can create: `1.lock`, `2.lock`, … The highest number has the
// session. Whoever wants it looks whether the highest one still writes, and if not, creates the next. A writer that has
// written looks for a higher number afterwards: if there was none, everybody who comes later looks at the session only now,
// and so has seen what was written.

const LOCK = /^([1-9]\d{0,14})\.lock$/
/** Claims, and what somebody was about to put in its place when it died. */
const LEFT_BEHIND = /^(?:(\d{1,15})\.lock(?:\.[\w-]+)?|(\d{1,15})\.jsonl\.new|head\.json\.(\d{1,15}))$/
const LAST_EPOCH = 999_999_999_999_999
const MAX_LOCK_BYTES = 4096
const ATTEMPTS = 16

export type SessionLock = {
  readonly epoch: number
  /** A name that nobody else has. */
  readonly token: string
  /** Whether the one before let go of the session in good order, so that nothing will be added to what it wrote. */
  readonly clean: boolean
  /** Whether nobody has taken the session over. */
  isLatest(): boolean
  renew(): void
  /** Lets go of the session: in good order, or leaving something that the next one must not add to. */
  end(how: 'released' | 'left'): void
  /** As if it had never been made; for whoever has changed nothing. */
  withdraw(): void
}

/** Takes the session in a folder, or throws SESSION_BUSY. */
export function lockSession(id: string, folder: string, leaseMs: number): SessionLock {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = latestLock(id, folder)
    if (before !== undefined && before.ended === undefined && isLocked(before))
      throw sessionBusy(id, describeLockOwner(before.owner))
    const lock = createLock(id, folder, { before, leaseMs })
    if (lock !== undefined) return lock
  }
  throw sessionBusy(id, 'several others')
}

type FoundLock = LockState & {
  readonly epoch: number
  readonly text: string
  readonly ended: 'released' | 'left' | undefined
}

function latestLock(id: string, folder: string): FoundLock | undefined {
  const epoch = Math.max(0, ...epochsOf(id, folder))
  if (epoch >= LAST_EPOCH) throw sessionCorrupt(id, `nobody can come after writer ${epoch}`)
  if (epoch === 0) return undefined
  const path = lockPath(folder, epoch)
  const text = readFile(id, path, MAX_LOCK_BYTES)?.toString('utf8')
  const found = fs().lstatSync(path, { throwIfNoEntry: false })
  if (text === undefined || found === undefined) return latestLock(id, folder) // it has just been cleared away
  const [first, ended] = text.split('\n')
  const owner = parseLockOwner(first)
  return {
    epoch,
    text,
    owner,
    renewedAt: found.mtimeMs,
    leaseMs: toLease(owner && (JSON.parse(first!) as { leaseMs?: unknown }).leaseMs),
    ended: ended === 'released' || ended === 'left' ? ended : undefined,
  }
}

function createLock(
  id: string,
  folder: string,
  { before, leaseMs }: { readonly before: FoundLock | undefined; readonly leaseMs: number },
): SessionLock | undefined {
  const epoch = (before?.epoch ?? 0) + 1
  const path = lockPath(folder, epoch)
  const owner = newLockOwner()
  const text = `${JSON.stringify({ ...owner, leaseMs })}\n`
  const file = createWhole(path, text, { temporary: `${path}.${owner.token}` })
  if (file === undefined) return undefined
  const { ino } = fs().fstatSync(file)
  const isOwn = (): boolean => fs().lstatSync(path, { throwIfNoEntry: false })?.ino === ino
  const withdraw = (): void => {
    if (isOwn()) fs().unlinkSync(path)
    fs().closeSync(file)
  }
  try {
    // Others may have come and gone since it was looked at, or the session was deleted and made again meanwhile.
    const now = before && readFile(id, lockPath(folder, before.epoch), MAX_LOCK_BYTES)?.toString('utf8')
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
    clean: before === undefined || before.ended === 'released',
    // In this order: old claims are cleared away from the lowest up, so if the next is gone, this one is gone as well.
    isLatest: () => fs().lstatSync(lockPath(folder, epoch + 1), { throwIfNoEntry: false }) === undefined && isOwn(),
    renew: () => fs().futimesSync(file, new Date(), new Date()),
    end: (how) => {
      try {
        writeAll(file, `${how}\n`)
      } catch {
        // Then its lease runs out.
      }
      fs().closeSync(file)
    },
    withdraw,
  }
}

/** Clears away what earlier writers left beside the session, from the lowest up. */
export function removeOldLocks(id: string, folder: string, epoch: number): void {
  const names = namesIn(id, folder) ?? []
  const older = names.flatMap((name) => {
    const [, lock, segment, head] = LEFT_BEHIND.exec(name) ?? []
    const of = Number(lock ?? segment ?? head)
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
