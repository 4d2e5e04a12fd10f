import { systemClock } from '../../core/effects/run-time.ts'
import type { Json } from '../../values/json.ts'
import { abortable, Deadline } from '../../system/timeout.ts'
import type { SessionStore } from '../stores/store.ts'

/** The new value if something was taken from it; otherwise why not, and whether it is worth waiting. */
export type Attempt<Full> = { readonly value: Json } | { readonly full: Full; readonly isFinal?: boolean }

/** How it ended: something was taken, or it was full until the time was over. */
export type Taken<Full> = { readonly waitedMs: number; readonly full?: Full }

export type Waiting = { readonly maxWaitMs: number; readonly signal: AbortSignal }

const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 1_000

/** Values in a store from which several processes take something, and give it back. */
export class SharedCounter {
  readonly #store: SessionStore
  readonly #lines = new Map<string, Line>()

  constructor(store: SessionStore) {
    this.#store = store
  }

  /** Changes a value at once. `now` is the time of the store. */
  async update(name: string, change: (value: Json | undefined, now: number) => Json): Promise<void> {
    await this.#store.update(name, (value, now = Date.now()) => change(value, now))
  }

  /** Changes a value, and wakes who waits for it in this process. */
  async giveBack(name: string, change: (value: Json | undefined, now: number) => Json): Promise<void> {
    await this.update(name, change).finally(() => this.#lines.get(name)?.wake())
  }

  /**
   * Tries to take something, until the signal aborts or the time is over. Of all that wait for a value in this process, in
   * order, only the first asks the store: after 50 ms at first, then after up to a second.
   */
  async take<Full>(
    name: string,
    attempt: (value: Json | undefined, now: number) => Attempt<Full>,
    { maxWaitMs, signal }: Waiting,
  ): Promise<Taken<Full>> {
    const started = performance.now()
    const deadline = new Deadline(signal)
    deadline.start(maxWaitMs, () => new Error(`nothing was free within ${maxWaitMs} ms`))
    const line = this.#lines.get(name) ?? new Line()
    this.#lines.set(name, line)
    const leave = await line.enter(deadline.signal)
    try {
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        signal.throwIfAborted()
        let tried: Attempt<Full> | undefined
        await this.#store.update(name, (value, now = Date.now()) => {
          tried = attempt(value, now)
          return 'value' in tried ? tried.value : (value ?? {})
        })
        const waitedMs = Math.round(performance.now() - started)
        if ('value' in tried!) return { waitedMs }
        const { full, isFinal = false } = tried!
        if (isFinal || deadline.signal.aborted) return { waitedMs, full }
        await line.pause(pauseMs * (0.5 + Math.random() / 2), deadline.signal)
      }
    } finally {
      deadline.clear()
      leave()
      if (line.isEmpty) this.#lines.delete(name)
    }
  }
}

/** Those in this process that wait for the same value, in order. */
class Line {
  #last: Promise<void> = Promise.resolve()
  #length = 0
  #wake: (() => void) | undefined

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** Resolves when all before have left, or the signal aborts. */
  async enter(signal: AbortSignal): Promise<() => void> {
    const before = this.#last
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last = before.then(() => promise)
    this.#length++
    await abortable(before, signal).catch(() => undefined)
    return () => {
      this.#length--
      resolve()
    }
  }

  /** Until this process has released something, but at most so long. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    const stop = new AbortController()
    this.#wake = () => stop.abort()
    await systemClock.sleep(ms, AbortSignal.any([signal, stop.signal]))
  }

  wake(): void {
    this.#wake?.()
  }
}
