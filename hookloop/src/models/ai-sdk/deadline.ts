import type { ModelSettings } from '../../state/inference.ts'
import { MAX_TIMER_MS } from '../../effects/effects.ts'
import { AgentError } from '../../errors.ts'

const TIMEOUT_MS = 600_000

/**
 * The time a call may take, as a signal that closes the connection: in all, and, while it streams, between two pieces.
 * Nothing is left on the run's own signal, which may live as long as the process.
 */
export class Deadline {
  /** What to tell when the time was over. */
  over: AgentError | undefined
  readonly #controller = new AbortController()
  readonly #run: AbortSignal
  readonly #total: NodeJS.Timeout
  readonly #idleMs: number | undefined
  #idle: NodeJS.Timeout | undefined
  readonly #forward = (): void => this.#controller.abort(this.#run.reason)

  constructor(run: AbortSignal, { timeoutMs = TIMEOUT_MS, idleTimeoutMs }: ModelSettings = {}) {
    this.#run = run
    this.#idleMs = idleTimeoutMs
    run.addEventListener('abort', this.#forward, { once: true })
    if (run.aborted) this.#forward()
    this.#total = this.#after(timeoutMs, `The model did not finish within ${timeoutMs} ms.`)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** A stream is asked for, or something of it was heard: the wait for the next piece begins anew. */
  touch(): void {
    if (this.#idleMs === undefined) return
    clearTimeout(this.#idle)
    this.#idle = this.#after(this.#idleMs, `The model was silent for ${this.#idleMs} ms.`)
  }

  /** Waits for work that may not heed the signal. */
  async within<T>(work: PromiseLike<T>): Promise<T> {
    let listener: (() => void) | undefined
    const ended = new Promise<never>((_resolve, reject) => {
      listener = () => reject(this.signal.reason)
      if (this.signal.aborted) listener()
      else this.signal.addEventListener('abort', listener, { once: true })
    })
    try {
      return await Promise.race([work, ended])
    } finally {
      this.signal.removeEventListener('abort', listener!)
    }
  }

  clear(): void {
    clearTimeout(this.#total)
    clearTimeout(this.#idle)
    this.#run.removeEventListener('abort', this.#forward)
  }

  #after(ms: number, message: string): NodeJS.Timeout {
    const end = (): void => {
      this.over = new AgentError('MODEL_TIMED_OUT', message, { value: { afterMs: ms } })
      this.#controller.abort(this.over)
    }
    return setTimeout(end, Math.min(ms, MAX_TIMER_MS))
  }
}
