import type { Wake } from '../../hook-files/claude/run/hook-memory.ts'

/** A hook that answers a turn by waking the model would never let it rest. */
const MAX_IN_A_ROW = 8

/** What hooks in the background want the model to hear while nobody says anything. */
export class Wakes {
  #waiting: readonly Wake[] = []
  #rings = new AbortController()
  #inARow = 0

  readonly add = (wake: Wake): void => {
    this.#waiting = [...this.#waiting.filter(({ isHeard }) => !isHeard()), wake]
    this.#rings.abort()
  }

  /** Aborts when there is something to hear. */
  get signal(): AbortSignal {
    return this.#rings.signal
  }

  /**
   * What is to be heard now in a session, once; the model hears all of it when anything is said there. `tired`: it was woken so
   * often that somebody has to say something first.
   */
  take(session: string): readonly string[] | 'tired' {
    const due = this.#waiting.filter((wake) => wake.session === session && !wake.isHeard())
    this.#waiting = []
    this.#rings = new AbortController()
    if (due.length > 0 && ++this.#inARow > MAX_IN_A_ROW) return 'tired'
    return due.map(({ words }) => words)
  }

  /** Somebody is there, and has said something. */
  reset(): void {
    this.#inARow = 0
  }
}
