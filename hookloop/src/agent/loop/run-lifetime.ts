import { MAX_TIMER_MS } from '../../system/timeout.ts'
import { AgentError } from '../../errors.ts'
import { Waiting } from './waiting.ts'

/** When a call must have ended, all its attempts included, and which guard says so. */
export type CallLimit = { readonly until: number; readonly ms: number; readonly by: string }

/** A limit that begins now. */
export function limitFromNow({ ms, by }: { readonly ms: number; readonly by: string }): CallLimit {
  return { until: performance.now() + ms, ms, by }
}

/** A limit on the time of a run moves by what was measured, not by more. */
const SAME_MS = 50

/**
 * Cuts model calls off when the time that guards give them is over. A limit on the whole run says the same moment before
 * each call, so there is one timer for all of them, and a step costs none.
 */
export class RunDeadline {
  readonly #run: AbortSignal
  readonly #cancellable: boolean
  #at = Infinity
  #timer: NodeJS.Timeout | undefined
  #controller: AbortController | undefined
  readonly #waiting = new Waiting()
  readonly #forward = (): void => this.#controller?.abort(this.#run.reason)

  constructor(run: AbortSignal, cancellable: boolean) {
    this.#run = run
    this.#cancellable = cancellable
  }

  /** The signal for a call that has so much time. It aborts with the run as well. */
  signalFor(limit: CallLimit): AbortSignal {
    const signal = this.#controller?.signal
    if (signal !== undefined && Math.abs(limit.until - this.#at) <= SAME_MS && !signal.aborted) return signal
    return this.#start(limit)
  }

  #start({ until, ms, by }: CallLimit): AbortSignal {
    this.clear()
    this.#at = until
    const controller = (this.#controller = new AbortController())
    if (this.#cancellable) this.#run.addEventListener('abort', this.#forward, { once: true })
    if (this.#run.aborted) this.#forward()
    const end = (): void => {
      const over = timeIsOver({ ms, by })
      controller.abort(over)
      this.#waiting.giveUp(over)
    }
    this.#timer = setTimeout(end, Math.min(Math.max(0, until - performance.now()), MAX_TIMER_MS))
    this.#timer.unref() // a run that nobody waits for any more must not keep the process
    return controller.signal
  }

  /** Waits for a call, also one that does not heed its signal. */
  within<T>(work: Promise<T>): Promise<T> {
    return this.#controller === undefined ? work : this.#waiting.for(work)
  }

  clear(): void {
    clearTimeout(this.#timer)
    if (this.#cancellable) this.#run.removeEventListener('abort', this.#forward)
    this.#controller = undefined
  }
}

function timeIsOver({ ms, by }: Pick<CallLimit, 'ms' | 'by'>): AgentError {
  const message = `The model call was cut off: "${by}" had given it ${Math.round(ms)} ms.`
  return new AgentError('MODEL_FORBIDDEN', message, { value: { limitedBy: by } })
}

/** Who gave a call that failed too little time, if that is why. */
export function limitedBy({ value }: { readonly value?: unknown }): string | undefined {
  const by = (value as { readonly limitedBy?: unknown } | null | undefined)?.limitedBy
  return typeof by === 'string' ? by : undefined
}
