import { isJsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'

/** Who writes to a session: enough to tell, on the machine it runs on, whether it still lives. */
export type LockOwner = {
  /** The machine, since when it runs, and which of its process tables: elsewhere a pid says nothing. */
  readonly where: string
  readonly pid: number
  /** When the process started, as its system says it, because pids are used again. Empty where that is not known. */
  readonly started: string
  /** Of this one holding: the same process may hold a session several times, one after the other. */
  readonly token: string
}

/** A session that is held, as it was found in a store. */
export type LockState = {
  /** Nothing if it cannot be read. */
  readonly owner: LockOwner | undefined
  readonly renewedAt: number
  readonly leaseMs: number
}

const DEFAULT_LEASE_MS = 30_000
export const MAX_LEASE_MS = 3_600_000

/** Who this process is, with a token of its own. */
export function newLockOwner(): LockOwner {
  const { randomUUID } = process.getBuiltinModule('node:crypto')
  return { where: here(), pid: process.pid, started: startOf('self') ?? '', token: randomUUID() }
}

/** Whether a session must be left to whoever holds it: a dead one is known at once, a silent one by its lease. */
export function isLocked(hold: LockState, now = Date.now()): boolean {
  if (hold.owner !== undefined && isDead(hold.owner)) return false
  return Math.abs(now - hold.renewedAt) <= hold.leaseMs // a time in the future is no better than one long ago
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

/** A owner that was kept as JSON, or nothing if it is none. */
export function parseLockOwner(text: unknown): LockOwner | undefined {
  let value: unknown
  try {
    value = JSON.parse(text as string)
  } catch {
    return undefined
  }
  if (!isJsonObject(value)) return undefined
  const { where, pid, started, token } = value
  if (typeof where !== 'string' || typeof started !== 'string' || typeof token !== 'string') return undefined
  return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? { where, pid, started, token } : undefined
}

export function describeLockOwner(owner: LockOwner | undefined): string {
  return owner === undefined ? 'somebody else' : `process ${owner.pid} on ${owner.where.split(' ')[0]}`
}

/** A lease as an option: how long a owner that cannot be looked at may be silent. */
export function checkLease(leaseMs: number = DEFAULT_LEASE_MS): number {
  if (Number.isInteger(leaseMs) && leaseMs >= 50 && leaseMs <= MAX_LEASE_MS) return leaseMs
  throw new AgentError('AGENT_INVALID_OPTION', `leaseMs must be a whole number from 50 to ${MAX_LEASE_MS}.`, {
    value: leaseMs,
  })
}

/** A lease as it was kept; nobody can hold a session for ever. */
export function toLease(kept: unknown): number {
  return typeof kept === 'number' && kept > 0 ? Math.min(kept, MAX_LEASE_MS) : DEFAULT_LEASE_MS
}

/** Calls `renew` often enough that a lease does not run out; keeps no process alive. Returns how to stop it. */
export function renewLease(leaseMs: number, renew: () => void): () => void {
  const timer = setInterval(renew, leaseMs / 3)
  timer.unref()
  return () => clearInterval(timer)
}

let knownHere: string | undefined

function here(): string {
  return (knownHere ??= [process.getBuiltinModule('node:os').hostname(), bootId(), processTable()].join(' '))
}

function bootId(): string {
  try {
    return process.getBuiltinModule('node:fs').readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return '-' // a system without one
  }
}

/** Containers on one machine may share a folder and a name, but not their pids. */
function processTable(): string {
  try {
    return process.getBuiltinModule('node:fs').readlinkSync('/proc/self/ns/pid')
  } catch {
    return '-'
  }
}

/** When a process started, in ticks since the system did. One that has ended and waits to be collected gives 'ended'. */
function startOf(pid: string): string | undefined {
  try {
    const stat = process.getBuiltinModule('node:fs').readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // the name before it may have anything in it
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19]
  } catch {
    return undefined
  }
}
