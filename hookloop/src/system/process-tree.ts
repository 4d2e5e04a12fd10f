import { setTimeout as sleep } from 'node:timers/promises'
import {
  findProcess,
  hasProc,
  listProcesses,
  listProcessesSince,
  thisMoment,
  type ProcessInfo,
} from './process-list.ts'
import { carriesTag, orphansAmong, type ProcessTag } from './process-tag.ts'

/** How long killing goes on before what is left is reported: processes of another user, or stuck in the kernel. */
const KILLING_MS = 2_000
const LOOK_AGAIN_MS = 20

/**
 * A process and everything it has started, also what has left its group and session, was handed to init, or has cleared its
 * environment. Everybody of it who was ever seen stays in it.
 */
export class ProcessTree {
  readonly #tag: ProcessTag
  readonly #root: { readonly pid: number; readonly started: number }
  readonly #seen = new Map<number, number>()
  readonly #begun = thisMoment()

  constructor(tag: ProcessTag, pid: number) {
    this.#tag = tag
    this.#root = { pid, started: findProcess(pid)?.started ?? 0 }
    this.#seen.set(pid, this.#root.started)
  }

  /** Those that are alive. */
  members(): readonly ProcessInfo[] {
    const { pid: root, started } = this.#root
    const living = listProcessesSince(root, this.#begun).filter((found) => !found.isZombie && found.started >= started)
    // A pid is not given away while it names a group or session. If it was, these are somebody else's.
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

  /** Sends a signal to all that are alive, and says how many they are. */
  signal(name: NodeJS.Signals): number {
    const members = this.members()
    for (const { pid } of members) signalProcess(pid, name)
    return members.length
  }

  /** Asks everybody to end, then makes them. Gives the number of those that could not be ended. */
  async end(graceMs: number): Promise<number> {
    const patience = performance.now() + graceMs
    let left = this.signal('SIGTERM')
    while (left > 0 && performance.now() < patience) {
      await sleep(LOOK_AGAIN_MS)
      left = this.members().length
    }
    const limit = performance.now() + KILLING_MS
    while (left > 0 && performance.now() < limit) {
      left = this.signal('SIGKILL')
      if (left > 0) await sleep(LOOK_AGAIN_MS)
    }
    return left
  }

  /** Kills everybody at once, for when there is no later. */
  endNow(): void {
    // Whoever was born while the others were killed is found in the next round.
    for (let round = 0; round < 50 && this.signal('SIGKILL') > 0; round++);
  }
}

/**
 * Kills what runtimes that were killed themselves have left behind, and says how many that were. Only on Linux, where one
 * can tell by what a process carries.
 */
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

function signalProcess(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // ended meanwhile, or of another user: whoever waits for it will say so
  }
}
