import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10
/** How long processes may take to vanish after SIGKILL before they are reported. */
const KILLED_MS = 1_000

/** A process that was started with `detached: true`, and all that it starts in its group. What leaves the group is not followed. */
export class ProcessGroup {
  /** The pid of the first process; undefined before it is started. */
  id: number | undefined

  /** Sends a signal to all members, and returns whether there are any. Signal 0 only looks. */
  signal(name: NodeJS.Signals | 0): boolean {
    if (this.id === undefined) return false
    try {
      return process.kill(-this.id, name)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EPERM' // a member of another user is alive
    }
  }

  /** Sends SIGTERM, and SIGKILL after the grace period. Returns false if some processes are still running. */
  async end(graceMs: number): Promise<boolean> {
    this.signal('SIGTERM')
    await this.hasEnded(graceMs)
    this.signal('SIGKILL')
    return this.hasEnded(KILLED_MS)
  }

  /** Waits until no member is running. Returns false if some are after the given time. */
  async hasEnded(ms: number): Promise<boolean> {
    const end = performance.now() + ms
    while (this.signal(0) && !hasOnlyZombies(this.id!)) {
      if (performance.now() >= end) return false
      await sleep(POLL_MS)
    }
    return true
  }
}

/** In a container whose first process is no init, no process collects the exit status of orphans: they stay in their group. */
function hasOnlyZombies(group: number): boolean {
  if (process.platform !== 'linux') return false
  return readdirSync('/proc').every((pid) => !/^\d/.test(pid) || !isRunningIn(group, pid))
}

/** The fields follow the name of the program, which may contain parentheses: state, parent, group. */
function isRunningIn(group: number, pid: string): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state, , own] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(own) === group && state !== 'Z' && state !== 'X'
  } catch {
    return false // it has ended
  }
}
