import { waitAtMost } from '../../system/timeout.ts'

/** How long observers and shadow hooks may still run when the run has ended. */
const DRAIN_MS = 5_000

/** What still runs in the background: observers and shadow hooks. */
export class BackgroundWork {
  readonly #observers = new Map<Promise<void>, (error: unknown) => void>()
  readonly #shadows = new Map<Promise<void>, () => void>()

  /** Tracks an observer. */
  watch(work: PromiseLike<unknown>, onError: (error: unknown) => void): void {
    const observer: Promise<void> = Promise.resolve(work).then(
      () => undefined,
      (error: unknown): void => this.#observers.get(observer)?.(error),
    )
    this.#observers.set(observer, onError)
    void observer.then(() => this.#observers.delete(observer))
  }

  /** Tracks a shadow hook. `giveUp` is called if it has not answered when the run ends. */
  follow(work: Promise<void>, giveUp: () => void): void {
    this.#shadows.set(work, giveUp)
    void work.then(() => this.#shadows.delete(work))
  }

  /** Waits for observers, for a limited time. Those that are still running then are left behind. Undefined if there are none. */
  drainObservers(): undefined | Promise<void> {
    return this.#observers.size === 0 ? undefined : this.#drain()
  }

  async #drain(): Promise<void> {
    const observers = this.#observers
    const ends = performance.now() + DRAIN_MS
    for (let before = Infinity; observers.size > 0 && observers.size < before;) {
      before = observers.size
      await waitAtMost(Promise.all(observers.keys()), ends - performance.now())
    }
    const error = new Error(`It was still running ${DRAIN_MS / 1000} s after the end of the run, and was left behind.`)
    for (const onError of observers.values()) onError(error)
    observers.clear()
  }

  /** Waits for shadow hooks, for a limited time. Those that have not answered by then are recorded as failed. */
  async settleShadows(): Promise<void> {
    const shadows = this.#shadows
    if (shadows.size === 0) return
    await waitAtMost(Promise.all(shadows.keys()), DRAIN_MS)
    for (const giveUp of shadows.values()) giveUp()
    shadows.clear()
  }
}
