import type { Wake } from '../../hook-files/claude/run/hook-memory.ts'

/** A hook that wakes the model after every turn would never let it rest. */
const MAX_IN_A_ROW = 8

/** Messages that background hooks have for the model while the user types nothing. */
export class WakeQueue {
  #waiting: readonly Wake[] = []
  #arrived = new AbortController()
  #inARow = 0

  readonly add = (wake: Wake): void => {
    this.#waiting = [...this.#waiting.filter(({ isReceived }) => !isReceived()), wake]
    this.#arrived.abort()
  }

  /** Aborts when a message arrives. */
  get signal(): AbortSignal {
    return this.#arrived.signal
  }

  /**
   * Removes and returns the messages for a session that the model has not received yet. `limitReached`: the model was woken
   * so often in a row that the user has to write first.
   */
  take(session: string): readonly string[] | 'limitReached' {
    const due = this.#waiting.filter((wake) => wake.session === session && !wake.isReceived())
    this.#waiting = []
    this.#arrived = new AbortController()
    if (due.length > 0 && ++this.#inARow > MAX_IN_A_ROW) return 'limitReached'
    return due.map(({ text }) => text)
  }

  /** The user has written something. */
  reset(): void {
    this.#inARow = 0
  }
}
