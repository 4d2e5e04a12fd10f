import { spawnSync } from 'node:child_process'
import { createHash, randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { once } from '../once.ts'
import { environmentOf, findProcess, hasProc, pidNamespace, memoryLimitOf, type ProcessInfo } from './process-list.ts'

/** The environment variable that tags every process started here. Its children inherit it. */
export const TAG_VARIABLE = 'HOOKLOOP_PROCESS'

/** A program with its arguments, or a line for a shell. */
export type Command = readonly [string, ...string[]] | ShellLine
type ShellLine = { readonly shell: 'sh' | 'bash'; readonly line: string }

/**
 * Identifies the processes of one call, whatever they do to their parent, group, session and pipes: by an environment
 * variable, and by a resource limit that children inherit. Linux does not enforce the limit on the resident set, so its
 * number can serve as an id. Unlike a variable it survives `env -i`, and only a privileged process can raise it.
 */
export type ProcessTag = {
  /** The value of the variable: the ids of outer runtimes, then of this one. */
  readonly variable: string
  readonly id: string
  /** In bytes. */
  readonly limit: bigint | undefined
}

export function newTag(): ProcessTag {
  const id = `${owner()}.${crypto.randomUUID().replaceAll('-', '')}`
  const outer = process.env[TAG_VARIABLE]
  return { id, variable: outer === undefined || outer === '' ? id : `${outer}/${id}`, limit: newLimit() }
}

/** The command line that sets the limit and then runs the command. A shell sets it itself, which saves one process start. */
export function withTagLimit(command: Command, { limit }: ProcessTag): readonly [string, ...string[]] {
  if ('line' in command) {
    const { shell, line } = command
    return [shell, '-c', limit === undefined ? line : `ulimit -m ${limit / UNIT}; ${line}`]
  }
  const program = limit === undefined ? undefined : prlimit()
  return program === undefined ? command : [program, `--rss=${limit}:${limit}`, '--', ...command]
}

export function carriesTag(pid: number, { id, limit }: ProcessTag): boolean {
  if (!hasProc) return false
  return environmentOf(pid).includes(id) || (limit !== undefined && memoryLimitOf(pid) === String(limit))
}

/** The processes whose runtime has ended. Those of other pid namespaces are left out: their runtime cannot be looked up from here. */
export function orphansAmong(processes: readonly ProcessInfo[]): readonly ProcessInfo[] {
  const namespace = pidNamespace()
  const living = processes.filter(({ isZombie }) => !isZombie)
  const owners = new Set(living.map(({ pid, started }) => `${namespace}.${pid}.${started}`))
  const hashes = new Set([...owners].map(hashOf))
  return living.filter(({ pid }) => {
    const named = ownerIn(environmentOf(pid))
    if (named !== undefined) return named.startsWith(`${namespace}.`) && !owners.has(named)
    const hash = ownerHashIn(memoryLimitOf(pid))
    return hash !== undefined && !hashes.has(hash) && pidNamespace(pid) === namespace
  })
}

/** The innermost runtime that is named in an environment. */
function ownerIn(environment: Buffer): string | undefined {
  const at = environment.indexOf(`${TAG_VARIABLE}=`)
  if (at < 0 || (at > 0 && environment[at - 1] !== 0)) return undefined
  const end = environment.indexOf(0, at)
  const value = environment.toString('latin1', at + TAG_VARIABLE.length + 1, end < 0 ? undefined : end)
  return /(\d+\.\d+\.\d+)\.[0-9a-f]+$/.exec(value)?.[1]
}

/** The id of this runtime, from which another one can see whether it is still running. */
const owner = once(() => `${pidNamespace()}.${process.pid}.${findProcess(process.pid)?.started ?? 0}`)

/**
 * The limit has 61 bits: a one, a hash of the runtime, a number for the call, and ten zeros, because shells count in units
 * of 1,024 bytes. A runtime inside another one lowers that number, because unprivileged processes cannot raise a limit.
 */
const UNIT = 1_024n
const MARK = 1n << 60n
const HASH_SHIFT = 38n

function newLimit(): bigint | undefined {
  const { isUsable, outer } = findLimit()
  if (!isUsable) return undefined
  if (outer !== undefined) return outer - UNIT * BigInt(1 + randomInt(2 ** 20))
  return MARK + (BigInt(hashOf(owner())) << HASH_SHIFT) + UNIT * BigInt(randomInt(2 ** 27, 2 ** 28))
}

function ownerHashIn(limit: string): number | undefined {
  const value = parseLimit(limit)
  return value === undefined ? undefined : Number((value - MARK) >> HASH_SHIFT)
}

function parseLimit(limit: string): bigint | undefined {
  if (!/^\d{19}$/.test(limit)) return undefined
  const value = BigInt(limit)
  return value >= MARK && value < 2n * MARK ? value : undefined
}

function hashOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) >>> 10
}

const findLimit = once((): { readonly isUsable: boolean; readonly outer: bigint | undefined } => {
  const none = { isUsable: false, outer: undefined }
  if (!hasProc) return none
  const own = memoryLimitOf(process.pid)
  const outer = parseLimit(own)
  if (outer === undefined && own !== 'unlimited') return none // a real limit is set
  const units = (outer ?? 2n * MARK - UNIT) / UNIT
  // Some systems, such as kernels in user space, report the limit but do not allow setting it.
  const { status } = spawnSync('/bin/sh', ['-c', `ulimit -m ${units}`], { stdio: 'ignore', env: {} })
  return { isUsable: status === 0, outer }
})

const prlimit = once(() => ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path)))
