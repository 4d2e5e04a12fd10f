import { isJsonObject } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'

/** The store that has a session locked, with its process: enough to tell on its machine whether it is still alive. */
export type LockOwner = {
  /** Host name, boot id and process namespace. A pid means nothing outside of them. */
  readonly where: string
  readonly pid: number
  /** The start time of the process, because pids are reused. Empty where the system does not tell. */
  readonly started: string
  /** Unique per store. */
  readonly token: string
}

const DEFAULT_LEASE_MS = 30_000
/** No stored lease locks a session for longer. */
export const MAX_LEASE_MS = 3_600_000

/** A store of this process as a lock owner, with a new token, as text. */
export function newLockOwner(): string {
  knownStart ??= startOf('self') ?? ''
  const owner: LockOwner = { where: here(), pid: process.pid, started: knownStart, token: crypto.randomUUID() }
  return JSON.stringify(owner)
}

/** Whether the process of a lock owner is dead. True only if it is certain. */
export function isDead(text: string): boolean {
  const owner = parseLockOwner(text)
  if (owner?.where !== here()) return false
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  const started = startOf(String(owner.pid))
  return started !== undefined && started !== owner.started
}

/** Reads a lock owner that was stored. Undefined if it is not one. */
export function parseLockOwner(text: string): LockOwner | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isJsonObject(value)) return undefined
  const { where, pid, started, token } = value
  if (typeof where !== 'string' || typeof started !== 'string' || typeof token !== 'string') return undefined
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return undefined
  return { where, pid, started, token }
}

/** Such as `process 4711 on build-3`. */
export function describeLockOwner(text: string | null | undefined): string {
  const owner = parseLockOwner(text ?? '')
  return owner === undefined ? 'another process' : `process ${owner.pid} on ${owner.where.split(' ')[0]}`
}

/** Checks the option `leaseMs`. */
export function checkLease(leaseMs: number = DEFAULT_LEASE_MS): number {
  if (Number.isInteger(leaseMs) && leaseMs >= 50 && leaseMs <= MAX_LEASE_MS) return leaseMs
  throw new AgentError('AGENT_INVALID_OPTION', `leaseMs must be an integer from 50 to ${MAX_LEASE_MS}.`, {
    value: leaseMs,
  })
}

let knownHere: string | undefined
let knownStart: string | undefined

/** Containers on one machine may share a folder and a host name, but not their pids. Only Linux has a boot id and namespaces. */
function here(): string {
  const fs = process.getBuiltinModule('node:fs')
  return (knownHere ??= [
    process.getBuiltinModule('node:os').hostname(),
    orDash(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    orDash(() => fs.readlinkSync('/proc/self/ns/pid')),
  ].join(' '))
}

function orDash(read: () => string): string {
  try {
    return read()
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
