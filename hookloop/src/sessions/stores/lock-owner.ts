import { isJsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import type { SessionLock } from './store.ts'

/** The process that has a session locked: enough to tell on its machine whether it is still alive. */
export type LockOwner = {
  /** Host name, boot id and process namespace. A pid means nothing outside of them. */
  readonly where: string
  readonly pid: number
  /** The start time of the process, because pids are reused. Empty where the system does not tell. */
  readonly started: string
  /** Unique per lock: one process may lock a session several times in a row. */
  readonly token: string
  /** When it was locked. Locks of older versions do not say so. */
  readonly at?: number
}

/** A lock as a store holds it. */
type LockState = {
  /** Undefined if it cannot be read. */
  readonly owner: LockOwner | undefined
  readonly renewedAt: number
  readonly leaseMs: number
}

const DEFAULT_LEASE_MS = 30_000
export const MAX_LEASE_MS = 3_600_000

/** This process as a lock owner, with a new token. */
export function newLockOwner(): LockOwner {
  const { randomUUID } = process.getBuiltinModule('node:crypto')
  knownStart ??= startOf('self') ?? ''
  return { where: here(), pid: process.pid, started: knownStart, token: randomUUID(), at: Date.now() }
}

/** Whether a lock is in force: its owner is not known to be dead, and its lease has not expired. */
export function isLocked(lock: LockState, now = Date.now()): boolean {
  if (lock.owner !== undefined && isDead(lock.owner)) return false
  return Math.abs(now - lock.renewedAt) <= lock.leaseMs // a time far in the future has expired as well
}

/** True only if it is certain. */
export function isDead(owner: LockOwner): boolean {
  if (owner.where !== here()) return false
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  const started = startOf(String(owner.pid))
  return started !== undefined && started !== owner.started
}

/** Reads a lock owner from JSON. Undefined if it is not one. */
export function parseLockOwner(text: unknown): LockOwner | undefined {
  let value: unknown
  try {
    value = JSON.parse(text as string)
  } catch {
    return undefined
  }
  if (!isJsonObject(value)) return undefined
  const { where, pid, started, token, at } = value
  if (typeof where !== 'string' || typeof started !== 'string' || typeof token !== 'string') return undefined
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return undefined
  return { where, pid, started, token, ...(typeof at === 'number' && { at }) }
}

export function describeLockOwner(owner: LockOwner | undefined): string {
  return owner === undefined ? 'another process' : `process ${owner.pid} on ${owner.where.split(' ')[0]}`
}

/** A lock for a list of sessions. */
export function toSessionLock(owner: LockOwner | undefined): SessionLock {
  return { owner: describeLockOwner(owner), ...(owner?.at !== undefined && { since: owner.at }) }
}

/** Checks the option `leaseMs`. */
export function checkLease(leaseMs: number = DEFAULT_LEASE_MS): number {
  if (Number.isInteger(leaseMs) && leaseMs >= 50 && leaseMs <= MAX_LEASE_MS) return leaseMs
  throw new AgentError('AGENT_INVALID_OPTION', `leaseMs must be an integer from 50 to ${MAX_LEASE_MS}.`, {
    value: leaseMs,
  })
}

/** A lease as it was stored, bounded so that no stored value locks a session for ever. */
export function toLease(stored: unknown): number {
  return typeof stored === 'number' && stored > 0 ? Math.min(stored, MAX_LEASE_MS) : DEFAULT_LEASE_MS
}

let knownHere: string | undefined
let knownStart: string | undefined

function here(): string {
  return (knownHere ??= [process.getBuiltinModule('node:os').hostname(), bootId(), processNamespace()].join(' '))
}

function bootId(): string {
  try {
    return process.getBuiltinModule('node:fs').readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return '-' // only Linux has one
  }
}

/** Containers on one machine may share a folder and a host name, but not their pids. */
function processNamespace(): string {
  try {
    return process.getBuiltinModule('node:fs').readlinkSync('/proc/self/ns/pid')
  } catch {
    return '-'
  }
}

/** The start time of a process in ticks since boot; 'ended' for a zombie. */
function startOf(pid: string): string | undefined {
  try {
    const stat = process.getBuiltinModule('node:fs').readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // the process name may contain anything
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
  } catch {
    return undefined
  }
}
