import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { environmentOf, findProcess, hasProc, pidNamespace, realTimeLimitOf } from './process-list.ts'

/** The variable that every process started here carries, and with it everything it starts. */
export const TAG_VARIABLE = 'HOOKLOOP_PROCESS'

/**
 * How the processes of one call are told from all others, whatever they do to their parents, groups, sessions and pipes:
 * by a variable of their environment, and by a limit that children inherit. The limit is on real-time scheduling, which
 * none of them has, so that its number is free to be a name; unlike a variable it survives `env -i`, and only a privileged
 * process could raise it again.
 */
export type ProcessTag = {
  /** The value of the variable: those of the runtimes around this one, then this one's. */
  readonly variable: string
  readonly id: string
  readonly limit: string | undefined
  /** What to put in front of a command line to set the limit. */
  readonly wrapper: readonly string[]
}

export function newTag(): ProcessTag {
  const id = `${owner()}.${randomBytes(9).toString('hex')}`
  const around = process.env[TAG_VARIABLE]
  const limit = newLimit()
  return {
    id,
    variable: around === undefined || around === '' ? id : `${around}/${id}`,
    limit,
    wrapper: limit === undefined ? [] : [prlimit()!, `--rttime=${limit}:${limit}`, '--'],
  }
}

export function carriesTag(pid: number, { id, limit }: ProcessTag): boolean {
  if (!hasProc) return false
  return environmentOf(pid).includes(id) || (limit !== undefined && realTimeLimitOf(pid) === limit)
}

/**
 * Whether a process was started by a runtime that is no more. Runtimes of other pid namespaces are not judged: from here
 * nobody can say whether they live.
 */
export function isOrphaned(pid: number): boolean {
  const environment = environmentOf(pid)
  const at = environment.indexOf(`${TAG_VARIABLE}=`)
  if (at < 0 || (at > 0 && environment[at - 1] !== 0)) return false
  const end = environment.indexOf(0, at)
  const value = environment.toString('latin1', at + TAG_VARIABLE.length + 1, end < 0 ? undefined : end)
  const [namespace, ownerPid, started] = value.slice(value.lastIndexOf('/') + 1).split('.')
  if (namespace !== pidNamespace() || started === undefined) return false
  const found = findProcess(Number(ownerPid))
  return found === undefined || found.isZombie || String(found.started) !== started
}

let ownName: string | undefined

/** This runtime, so that whoever finds a process of it can tell whether it still runs. */
function owner(): string {
  ownName ??= `${pidNamespace()}.${process.pid}.${findProcess(process.pid)?.started ?? 0}`
  return ownName
}

const HIGHEST = 1n << 61n
const LOWEST = 1n << 60n

/** A number below every limit around: a limit can be lowered by anybody and raised by few. */
function newLimit(): string | undefined {
  const highest = highestLimit()
  if (highest === undefined) return undefined
  return String(highest - 1n - BigInt(`0x${randomBytes(6).toString('hex')}`))
}

let knownHighest: { readonly value: bigint | undefined } | undefined

function highestLimit(): bigint | undefined {
  knownHighest ??= { value: findHighestLimit() }
  return knownHighest.value
}

function findHighestLimit(): bigint | undefined {
  const command = prlimit()
  if (command === undefined) return undefined
  const own = realTimeLimitOf(process.pid)
  const highest = /^\d+$/.test(own) && BigInt(own) < HIGHEST ? BigInt(own) : HIGHEST
  if (highest < LOWEST) return undefined // somebody does limit it
  const value = highest - 1n
  // Some machines, such as those in user space, know the limit and do not let it be set.
  const { status } = spawnSync(command, [`--rttime=${value}:${value}`, '--', command, '--version'], { stdio: 'ignore' })
  return status === 0 ? highest : undefined
}

function prlimit(): string | undefined {
  return hasProc ? ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path)) : undefined
}
