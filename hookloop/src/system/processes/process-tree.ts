import { setTimeout as sleep } from 'node:timers/promises'
import {
  findProcess,
  hasProc,
  listProcesses,
  listProcessesSince,
  forkCountNow,
  lastPid,
  type ProcessInfo,
} from './process-list.ts'
import { carriesTag, orphansAmong, type ProcessTag } from './process-tag.ts'

/** How long SIGKILL is repeated before survivors are reported: processes of another user, or stuck in the kernel. */
const KILLING_MS = 2_000
/** On a busy machine that time may pass during the first round, which only finds what it kills. */
const MIN_ROUNDS = 5
const POLL_MS = 20
/** Longer than most processes live that replace themselves to escape. */
const CHASE_MS = 25
/** On a busy machine that time may pass during the first look. */
const MIN_LOOKS = 20
/** Pids that are read in one round, the newest first. */
const MAX_NEW = 64
/** A command that started fewer processes is not one that replaces itself all the time. */
const MANY = 8
const LOOK_MS = 3
const LOOKS = 6
/** On a busy machine other processes start all the time. */
const MAX_LOOKS = 5

/**
 * A process and all its descendants, including those that left its group and session, were adopted by init, or cleared their
 * environment. A process that was found once stays a member.
 */
export class ProcessTree {
  readonly #tag: ProcessTag
  readonly #root: { readonly pid: number; readonly started: number }
  readonly #seen = new Map<number, number>()
  readonly #startedAt = forkCountNow()

  constructor(tag: ProcessTag, pid: number) {
    this.#tag = tag
    this.#root = { pid, started: findProcess(pid)?.started ?? 0 }
    this.#seen.set(pid, this.#root.started)
  }

  /** The members that are alive. */
  members(): readonly ProcessInfo[] {
    for (let look = 1; ; look++) {
      const before = lastPid()
      const found = this.#look()
      // None were seen. One may have started another and exited during the look, unless nothing was started then.
      if (found.length > 0 || look === MAX_LOOKS || lastPid() === before) return found
    }
  }

  #look(): readonly ProcessInfo[] {
    const { pid: root, started } = this.#root
    const living = listProcessesSince(root, this.#startedAt).filter(
      (found) => !found.isZombie && found.started >= started,
    )
    // The kernel does not reuse a pid that names a group or session. If it was reused, these are foreign processes.
    const isReused = living.some((found) => found.pid === root && found.started !== started)
    const mine = new Map<number, ProcessInfo>()
    for (const found of living) {
      if (found.pid === process.pid) continue
      const isNear = !isReused && (found.session === root || found.group === root)
      if (isNear || this.#seen.get(found.pid) === found.started || carriesTag(found.pid, this.#tag))
        mine.set(found.pid, found)
    }
    addDescendants(mine, living)
    for (const { pid, started: since } of mine.values()) this.#seen.set(pid, since)
    return [...mine.values()]
  }

  /** Sends a signal to all living members, and returns their number. */
  signal(name: NodeJS.Signals): number {
    const members = this.members()
    for (const { pid } of members) signalProcess(pid, name)
    return members.length
  }

  /** Sends SIGTERM, and SIGKILL after the grace period. Returns the number of processes that could not be ended. */
  async end(graceMs: number): Promise<number> {
    const deadline = performance.now() + graceMs
    let left = this.signal('SIGTERM')
    while (left > 0 && performance.now() < deadline) {
      await sleep(POLL_MS)
      left = this.members().length
    }
    const limit = performance.now() + KILLING_MS
    let rounds = 0
    do {
      left = this.signal('SIGKILL')
      if (left > 0) await sleep(POLL_MS)
      left = Math.max(left, this.killNewest(CHASE_MS))
      if (left === 0) left = await this.#countNewest(lastPid())
    } while (left > 0 && (++rounds < MIN_ROUNDS || performance.now() < limit))
    return left
  }

  /**
   * Kills members as they are started, and returns how many were found. A process that forks and exits every few
   * milliseconds is never found by listing all processes: it has another pid when the list is complete. Only the newest pids
   * are read here, without a pause, which is faster than it can fork. It blocks this process for the given time.
   */
  killNewest(ms: number): number {
    const start = lastPid()
    if (start === undefined) return 0
    let [known, found] = [start - MAX_NEW, 0]
    const end = performance.now() + ms
    for (let look = 0; look < MIN_LOOKS || performance.now() < end; look++) {
      const last = lastPid() ?? known
      found += this.#newest(known, last).filter((pid) => signalProcess(pid, 'SIGKILL')).length
      known = last
    }
    return found
  }

  /** How many members were started in this moment. Zero at once if few processes were started, and none has just vanished. */
  async countNewest(hasVanished: boolean): Promise<number> {
    const known = lastPid()
    if (known === undefined) return 0
    const isQuiet = known >= this.#root.pid && known - this.#root.pid < MANY
    if (isQuiet && !hasVanished) return 0
    return this.#countNewest(known)
  }

  /** Looks several times: a process may replace itself while the pids are read. */
  async #countNewest(known: number | undefined): Promise<number> {
    if (known === undefined) return 0
    for (let look = 0; look < LOOKS; look++) {
      await sleep(LOOK_MS)
      const { length } = this.#newest(known - MAX_NEW, lastPid() ?? known)
      if (length > 0) return length
    }
    return 0
  }

  #newest(after: number, last: number): readonly number[] {
    const count = Math.min(Math.max(last - after, 0), 2 * MAX_NEW)
    const pids = Array.from({ length: count }, (_, i) => last - i)
    const isMember = (pid: number): boolean => pid !== process.pid && carriesTag(pid, this.#tag)
    return pids.filter((pid) => isMember(pid) && findProcess(pid)?.isZombie === false)
  }

  /** Kills all members synchronously, for when this process exits. */
  killNow(): void {
    // Each round finds the processes that were started during the round before.
    for (let round = 0; round < 50 && this.signal('SIGKILL') > 0; round++);
  }
}

/** Kills processes left behind by runtimes that were killed, and returns their number. Linux only: it needs the tags. */
export function reapOrphans(): number {
  if (!hasProc) return 0
  const orphans = orphansAmong(listProcesses())
  for (const { pid } of orphans) signalProcess(pid, 'SIGKILL')
  return orphans.length
}

function addDescendants(mine: Map<number, ProcessInfo>, living: readonly ProcessInfo[]): void {
  for (let before = -1; before < mine.size;) {
    before = mine.size
    for (const found of living) {
      if (mine.has(found.parent) && found.pid !== process.pid) mine.set(found.pid, found)
    }
  }
}

function signalProcess(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false // it has ended, or belongs to another user: then the caller reports it as a survivor
  }
}
