import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** A process of this machine, as much of it as is needed to tell whose it is. */
export type ProcessInfo = {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** The session, where the machine tells; otherwise 0. */
  readonly session: number
  /** When it started, in a unit that only serves to compare; 0 where the machine does not tell. Same pid, other start: another process. */
  readonly started: number
  /** It has ended and waits for its parent to take notice. */
  readonly isZombie: boolean
}

/** Whether processes can be told apart by what they carry: their environment and their limits. */
export const hasProc = process.platform === 'linux'

/** Every process, zombies included. Synchronous: what is found is signalled before it can change. */
export function listProcesses(): readonly ProcessInfo[] {
  return hasProc ? listProc() : listPs()
}

/** How many processes this machine has started so far; undefined where it does not tell. */
function countForks(): number | undefined {
  const count = hasProc ? /^processes (\d+)$/m.exec(readProc('stat')?.toString('latin1') ?? '')?.[1] : undefined
  return count === undefined ? undefined : Number(count)
}

/**
 * The process of a pid, and every one that was started after it. Pids are given out in order, so those since are looked at
 * one by one, and everything only when so many were given out that they may have begun again from the lowest.
 */
export function listProcessesSince(pid: number, then: Moment): readonly ProcessInfo[] {
  const last = Number(readProc('loadavg')?.toString('latin1').trim().split(' ').at(-1))
  const isInOrder = last >= pid && (performance.now() - then.at < MOMENT_MS || forksSince(then) < MAX_FORKS)
  if (!isInOrder || last - pid > MAX_PROBES) return listProcesses()
  return Array.from({ length: last - pid + 1 }, (_, i) => readStat(pid + i)).filter((found) => found !== undefined)
}

/** When a process was started: how many there had been, and the time. */
export type Moment = { readonly forks: number | undefined; readonly at: number }

/** The count may be a little old: that makes it seem that more were started since, and everything is looked at sooner. */
export function thisMoment(): Moment {
  const at = performance.now()
  if (counted === undefined || at - counted.at > COUNT_MS) counted = { forks: countForks(), at }
  return { forks: counted.forks, at }
}

let counted: Moment | undefined
const COUNT_MS = 1_000

function forksSince({ forks }: Moment): number {
  const now = forks === undefined ? undefined : countForks()
  return now === undefined ? Infinity : now - forks!
}

/** Within so little time no machine starts so many, and to count them is what takes longest here. */
const MOMENT_MS = 25
/** Of 32,768 pids at least, fewer than those that could have been given out twice. */
const MAX_FORKS = 16_000
/** Beyond so many it is quicker to ask which there are. */
const MAX_PROBES = 60

/** One process, or undefined if there is none with that pid. */
export function findProcess(pid: number): ProcessInfo | undefined {
  return hasProc ? readStat(pid) : listPs().find((found) => found.pid === pid)
}

/** What the process was started with. Empty when it cannot be read, as that of other users. */
export function environmentOf(pid: number): Buffer {
  return readProc(`${pid}/environ`) ?? Buffer.alloc(0)
}

/** The limit on the resident set of a process, as it is printed; empty when it cannot be read. */
export function memoryLimitOf(pid: number): string {
  const limits = readProc(`${pid}/limits`)?.toString('latin1') ?? ''
  return /^Max resident set +\S+ +(\S+)/m.exec(limits)?.[1] ?? ''
}

/** The pid namespace that a process lives in: pids of another one mean nothing here. */
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

/** The name of a process may hold anything, also parentheses and newlines: what matters comes after the last one. */
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
  if (!existsSync(file)) return undefined // the usual case, and an error takes ten times as long
  try {
    return readFileSync(file)
  } catch {
    return undefined // ended meanwhile, or of another user
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
