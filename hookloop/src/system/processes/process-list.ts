import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** A process of this machine, with the fields that show which tree it belongs to. */
export type ProcessInfo = {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** Its session; 0 where the system does not report it. */
  readonly session: number
  /** When it started, in a unit that is only good for comparison (0 if unknown): tells two processes with one pid apart. */
  readonly started: number
  /** It has ended, and its parent has not collected its exit status. */
  readonly isZombie: boolean
}

/** Whether the environment and the limits of other processes can be read. */
export const hasProc = process.platform === 'linux'

/** Every process, including zombies. Synchronous, so that a process can be signalled before anything changes. */
export function listProcesses(): readonly ProcessInfo[] {
  return hasProc ? listProc() : listPs()
}

/** How many processes this machine has started so far; undefined if unknown. */
function countForks(): number | undefined {
  const count = hasProc ? /^processes (\d+)$/m.exec(readProc('stat')?.toString('latin1') ?? '')?.[1] : undefined
  return count === undefined ? undefined : Number(count)
}

/**
 * The process of a pid and every process started after it. Pids are assigned in order, so only the pids since then are
 * read, and all processes only if so many were started that the numbering may have wrapped around.
 */
export function listProcessesSince(pid: number, then: ForkCount): readonly ProcessInfo[] {
  const last = lastPid() ?? 0
  const isInOrder = last >= pid && (performance.now() - then.at < RECENT_MS || forksSince(then) < MAX_FORKS)
  if (!isInOrder || last - pid > MAX_PROBES) return listProcesses()
  return Array.from({ length: last - pid + 1 }, (_, i) => readStat(pid + i)).filter((found) => found !== undefined)
}

/** The pid that was assigned last; undefined if unknown. Pids are assigned in order. */
export function lastPid(): number | undefined {
  const last = Number(readProc('loadavg')?.toString('latin1').trim().split(' ').at(-1))
  return Number.isInteger(last) && last > 0 ? last : undefined
}

/** How many processes had been started at a time. */
type ForkCount = { readonly forks: number | undefined; readonly at: number }

/** The count may be up to a second old. That only overestimates how many were started since. */
export function forkCountNow(): ForkCount {
  const at = performance.now()
  if (counted === undefined || at - counted.at > COUNT_MS) counted = { forks: countForks(), at }
  return { forks: counted.forks, at }
}

let counted: ForkCount | undefined
const COUNT_MS = 1_000

function forksSince({ forks }: ForkCount): number {
  const now = forks === undefined ? undefined : countForks()
  return now === undefined ? Infinity : now - forks!
}

/** In this time no machine starts that many processes, so they need not be counted, which is the slowest part. */
const RECENT_MS = 25
/** Half of the smallest pid range: fewer forks cannot have reused a pid. */
const MAX_FORKS = 16_000
/** For more pids it is faster to list all processes. */
const MAX_PROBES = 60

/** One process, or undefined if there is none with that pid. */
export function findProcess(pid: number): ProcessInfo | undefined {
  return hasProc ? readStat(pid) : listPs().find((found) => found.pid === pid)
}

/** The environment a process was started with. Empty if it cannot be read, such as that of another user. */
export function environmentOf(pid: number): Buffer {
  return readProc(`${pid}/environ`) ?? Buffer.alloc(0)
}

/** The resident set limit of a process as text; empty if it cannot be read. */
export function memoryLimitOf(pid: number): string {
  const limits = readProc(`${pid}/limits`)?.toString('latin1') ?? ''
  return /^Max resident set +\S+ +(\S+)/m.exec(limits)?.[1] ?? ''
}

/** The pid namespace of a process: pids of different namespaces cannot be compared. */
export function pidNamespace(pid: number | 'self' = 'self'): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`).replace(/\D/g, '')
  } catch {
    return '0'
  }
}

function listProc(): readonly ProcessInfo[] {
  return readdirSync('/proc').flatMap((name) => {
    const first = name.charCodeAt(0)
    if (first < 49 || first > 57) return []
    return readStat(Number(name)) ?? []
  })
}

/** The process name may contain parentheses and newlines: the fields follow the last parenthesis. */
function readStat(pid: number): ProcessInfo | undefined {
  const stat = readProc(`${pid}/stat`)?.toString('latin1')
  if (stat === undefined) return undefined
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session] = fields
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    started: Number(fields[19]),
    isZombie: state === 'Z' || state === 'X',
  }
}

function readProc(path: string): Buffer | undefined {
  const file = `/proc/${path}`
  if (!existsSync(file)) return undefined // the usual case, and ten times faster than an error
  try {
    return readFileSync(file)
  } catch {
    return undefined // it has ended, or belongs to another user
  }
}

function listPs(): readonly ProcessInfo[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,state='], { encoding: 'utf8' })
  return (stdout ?? '').split('\n').flatMap((line) => {
    const [pid, parent, group, state] = line.trim().split(/\s+/)
    if (pid === undefined || state === undefined) return []
    const isZombie = state.startsWith('Z')
    return { pid: Number(pid), parent: Number(parent), group: Number(group), session: 0, started: 0, isZombie }
  })
}
