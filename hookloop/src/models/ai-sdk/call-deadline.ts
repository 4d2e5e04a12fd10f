import type { ModelSettings } from '../../core/state/inference.ts'
import { AgentError } from '../../errors.ts'
import { abortable, Deadline } from '../../system/timeout.ts'

const TIMEOUT_MS = 600_000

/** The time limits of a model call: in total and, while it streams, between two parts. Its signal closes the connection. */
export class CallDeadline {
  readonly #total: Deadline
  readonly #idle: Deadline
  readonly #idleMs: number | undefined

  constructor(run: AbortSignal, { timeoutMs = TIMEOUT_MS, idleTimeoutMs }: ModelSettings = {}) {
    this.#total = new Deadline(run)
    this.#idle = new Deadline(this.#total.signal)
    this.#idleMs = idleTimeoutMs
    this.#total.start(timeoutMs, () => timedOut(timeoutMs, `The model did not finish within ${timeoutMs} ms.`))
  }

  get signal(): AbortSignal {
    return this.#idle.signal
  }

  /** The error, once time is up. */
  get expired(): Error | undefined {
    return this.#total.expired ?? this.#idle.expired
  }

  /** The stream was requested, or a part of it arrived: the wait for the next part starts. */
  touch(): void {
    const ms = this.#idleMs
    if (ms !== undefined) this.#idle.start(ms, () => timedOut(ms, `The model sent nothing for ${ms} ms.`))
  }

  /** Waits for work that may ignore the signal. */
  within<T>(work: PromiseLike<T>): Promise<T> {
    return abortable(work, this.signal)
  }

  clear(): void {
    this.#total.clear()
    this.#idle.clear()
  }
}

function timedOut(afterMs: number, message: string): AgentError {
  return new AgentError('MODEL_TIMED_OUT', message, { value: { afterMs } })
}
