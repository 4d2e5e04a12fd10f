import { AgentError } from '../../errors.ts'

// The owner of a lock is a store in a process, as a text: host name, boot id, process namespace, pid, start time of the process
// and a token of the store. It is enough to tell on its machine whether the process is still alive.

const DEFAULT_LEASE_MS = 30_000
/** No stored lease locks a session for longer. */
export const MAX_LEASE_MS = 3_600_000

/** A store of this process as a lock owner. */
export function newLockOwner(): string {
  return [here(), process.pid, (knownStart ??= startOf('self') ?? '-'), crypto.randomUUID()].join(' ')
}

/** Whether the process of a lock owner is dead. True only if it is certain. */
export function isDead(owner: string): boolean {
  const { where, pid, started } = parts(owner)
  if (where !== here() || !/^[1-9]\d*$/.test(pid)) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  const now = startOf(pid)
  return now !== undefined && now !== started // pids are reused
}

/** Such as `process 4711 on build-3`. */
export function describeLockOwner(owner: string | null | undefined): string {
  const { host, pid, token } = parts(owner ?? '')
  return token === '' ? 'another process' : `process ${pid} on ${host}`
}

function parts(owner: string) {
  const [host = '', boot = '', namespace = '', pid = '', started = '', token = ''] = owner.split(' ')
  return { host, where: `${host} ${boot} ${namespace}`, pid, started, token }
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
    process.getBuiltinModule('node:os').hostname().replaceAll(' ', '-'),
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
