/** The longest delay of a timer, about 24 days. `setTimeout` fires at once when it is given more. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Waits for `work`, and rejects with the error of `onTimeout` if it takes longer than `ms`. The work itself continues. With
 * `unref`, the process may exit while the timer is running.
 */
export async function withTimeout<T>(
  work: PromiseLike<T>,
  ms: number,
  onTimeout: () => Error,
  { unref = false } = {},
): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = startTimer(ms, () => reject(onTimeout()))
  if (unref) timer.unref()
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for `work`, but not longer than `ms`: resolves with `undefined` then. A rejection of the work is passed on. */
export async function waitAtMost<T>(work: PromiseLike<T>, ms: number): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>()
  const timer = startTimer(ms, () => resolve(undefined))
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for `work`, and rejects with the reason of the signal when that aborts. Leaves no listener on the signal. */
export async function abortable<T>(work: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * A signal that aborts when time is up, or with a parent signal. It keeps its timer itself: `AbortSignal.timeout` cannot be
 * stopped, and `AbortSignal.any` refers to its sources weakly. After `clear` nothing is left on the parent, which may live as long as
 * the process.
 *
 * @example
 * const deadline = new Deadline(signal)
 * deadline.start(5_000, () => new Error('no answer within 5000 ms'))
 * try {
 *   return await fetch(url, { signal: deadline.signal })
 * } finally {
 *   deadline.clear()
 * }
 */
export class Deadline {
  /** The error the signal aborted with, once time is up. */
  expired: Error | undefined
  readonly #controller = new AbortController()
  readonly #parent: AbortSignal | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #forward = (): void => this.#controller.abort(this.#parent?.reason)

  constructor(parent?: AbortSignal) {
    this.#parent = parent
    if (parent?.aborted === true) this.#forward()
    else parent?.addEventListener('abort', this.#forward, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Starts the timer, or starts it again. */
  start(ms: number, onTimeout: () => Error): void {
    clearTimeout(this.#timer)
    this.#timer = startTimer(ms, () => {
      if (this.signal.aborted) return
      this.expired = onTimeout()
      this.#controller.abort(this.expired)
    })
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#parent?.removeEventListener('abort', this.#forward)
  }
}

function startTimer(ms: number, act: () => void): NodeJS.Timeout {
  return setTimeout(act, Math.min(Math.max(0, ms), MAX_TIMER_MS))
}
