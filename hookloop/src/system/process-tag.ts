import { spawnSync } from 'node:child_process'
import { createHash, randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { environmentOf, findProcess, hasProc, pidNamespace, memoryLimitOf, type ProcessInfo } from './process-list.ts'

/** The variable that every process started here carries, and with it everything it starts. */
export const TAG_VARIABLE = 'HOOKLOOP_PROCESS'

/** What is run: a program with its arguments, or a line for a shell. */
export type Command = readonly [string, ...string[]] | ShellLine
export type ShellLine = { readonly shell: 'sh' | 'bash'; readonly line: string }

/**
 * How the processes of one call are told from all others, whatever they do to their parents, groups, sessions and pipes:
 * by a variable of their environment, and by a limit that children inherit. The limit is on the resident set, which Linux
 * does not enforce, so that its number is free to be a name; unlike a variable it survives `env -i`, and only a privileged
 * process could raise it again.
 */
export type ProcessTag = {
  /** The value of the variable: those of the runtimes around this one, then this one's. */
  readonly variable: string
  readonly id: string
  /** In bytes. */
  readonly limit: bigint | undefined
}

export function newTag(): ProcessTag {
  const id = `${owner()}.${crypto.randomUUID().replaceAll('-', '')}`
  const around = process.env[TAG_VARIABLE]
  return { id, variable: around === undefined || around === '' ? id : `${around}/${id}`, limit: newLimit() }
}

/** The command line that sets the limit and then runs the command. A shell sets it itself, which saves starting a program. */
export function marked(command: Command, { limit }: ProcessTag): readonly [string, ...string[]] {
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

/**
 * Those that were started by a runtime that is no more. Runtimes of other pid namespaces are not judged: from here nobody
 * can say whether they live.
 */
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

/** The innermost runtime that an environment names. */
function ownerIn(environment: Buffer): string | undefined {
  const at = environment.indexOf(`${TAG_VARIABLE}=`)
  if (at < 0 || (at > 0 && environment[at - 1] !== 0)) return undefined
  const end = environment.indexOf(0, at)
  const value = environment.toString('latin1', at + TAG_VARIABLE.length + 1, end < 0 ? undefined : end)
  return /(\d+\.\d+\.\d+)\.[0-9a-f]+$/.exec(value)?.[1]
}

let ownName: string | undefined

/** This runtime, so that whoever finds a process of it can tell whether it still runs. */
function owner(): string {
  ownName ??= `${pidNamespace()}.${process.pid}.${findProcess(process.pid)?.started ?? 0}`
  return ownName
}

/**
 * A limit of ours has 61 bits: one, then a hash of the runtime, then a number for the call, then ten zeros, because shells
 * count in units of 1,024 bytes. Runtimes within runtimes only lower that number, because a limit can be lowered by
 * anybody and raised by few.
 */
const UNIT = 1_024n
const MARK = 1n << 60n
const HASH_SHIFT = 38n

function newLimit(): bigint | undefined {
  const { isUsable, around } = findLimit()
  if (!isUsable) return undefined
  if (around !== undefined) return around - UNIT * BigInt(1 + randomInt(2 ** 20))
  return MARK + (BigInt(hashOf(owner())) << HASH_SHIFT) + UNIT * BigInt(randomInt(2 ** 27, 2 ** 28))
}

function ownerHashIn(limit: string): number | undefined {
  const value = toLimitOfOurs(limit)
  return value === undefined ? undefined : Number((value - MARK) >> HASH_SHIFT)
}

function toLimitOfOurs(limit: string): bigint | undefined {
  if (!/^\d{19}$/.test(limit)) return undefined
  const value = BigInt(limit)
  return value >= MARK && value < 2n * MARK ? value : undefined
}

function hashOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) >>> 10
}

type FoundLimit = { readonly isUsable: boolean; readonly around: bigint | undefined }

let foundLimit: FoundLimit | undefined

function findLimit(): FoundLimit {
  foundLimit ??= lookForLimit()
  return foundLimit
}

function lookForLimit(): FoundLimit {
  const none = { isUsable: false, around: undefined }
  if (!hasProc) return none
  const own = memoryLimitOf(process.pid)
  const around = toLimitOfOurs(own)
  if (around === undefined && own !== 'unlimited') return none // somebody does limit it
  const units = (around ?? 2n * MARK - UNIT) / UNIT
  // Some machines, such as those in user space, know the limit and do not let it be set.
  const { status } = spawnSync('/bin/sh', ['-c', `ulimit -m ${units}`], { stdio: 'ignore', env: {} })
  return { isUsable: status === 0, around }
}

let foundPrlimit: string | false | undefined

function prlimit(): string | undefined {
  foundPrlimit ??= ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path)) ?? false
  return foundPrlimit === false ? undefined : foundPrlimit
}
