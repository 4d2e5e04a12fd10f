import { AgentError } from '../../errors.ts'
import { MAX_TIMER_MS, waitAtMost } from '../../system/timeout.ts'

/** How long observers and shadow hooks may still run when the run has ended. */
const DRAIN_MS = 5_000

/** A limit on the time of a run is measured again before each call, and differs by what is measured. */
const SAME_MS = 50

/** When a call must have ended, including all its attempts, and the guard that set the limit. */
export type CallLimit = { readonly until: number; readonly ms: number; readonly by: string }

/** A limit that starts now. */
export function limitFromNow({ ms, by }: { readonly ms: number; readonly by: string }): CallLimit {
  return { until: performance.now() + ms, ms, by }
}

/** The guard whose time limit a failed call has exceeded, if that is why it failed. */
export function limitedBy({ value }: { readonly value?: unknown }): string | undefined {
  const by = (value as { readonly limitedBy?: unknown } | null | undefined)?.limitedBy
  return typeof by === 'string' ? by : undefined
}

/** What ends the work of a run: cancellation and the time limit of model calls; and what still runs in the background. */
export class RunLifetime {
  readonly #signal: AbortSignal
  /** Whether the signal can abort at all. If not, nothing listens to it. */
  readonly #cancellable: boolean
  readonly #untilCancel = new Waiting()
  readonly #untilDeadline = new Waiting()
  #observers: Set<Promise<void>> | undefined
  #shadows: Map<Promise<void>, () => void> | undefined
  #deadline = Infinity
  #timer: NodeJS.Timeout | undefined
  #controller: AbortController | undefined

  constructor(signal: AbortSignal, cancellable: boolean) {
    this.#signal = signal
    this.#cancellable = cancellable
    if (cancellable) signal.addEventListener('abort', this.#cancel, { once: true })
  }

  /** Waits for work, and rejects with RUN_CANCELLED when the run is cancelled first. One listener serves the whole run. */
  untilCancelled<T>(work: Promise<T>): Promise<T> {
    if (!this.#cancellable) return work
    const waiting = this.#untilCancel.for(work)
    if (this.#signal.aborted) this.#cancel()
    return waiting
  }

  /** Waits for a model call, until the limit of `signalFor` is over, even if the call ignores its signal. */
  untilDeadline<T>(work: Promise<T>): Promise<T> {
    return this.#controller === undefined ? work : this.#untilDeadline.for(work)
  }

  /**
   * The signal for a call with a time limit. It aborts with the run as well. A limit on the whole run sets the same
   * deadline before each call, so all of them share one timer.
   */
  signalFor({ until, ms, by }: CallLimit): AbortSignal {
    const current = this.#controller?.signal
    if (current !== undefined && Math.abs(until - this.#deadline) <= SAME_MS && !current.aborted) return current
    this.#clearDeadline()
    this.#deadline = until
    const controller = (this.#controller = new AbortController())
    if (this.#signal.aborted) controller.abort(this.#signal.reason)
    const end = (): void => {
      const error = limitExceeded(ms, by)
      controller.abort(error)
      this.#untilDeadline.giveUp(error)
    }
    this.#timer = setTimeout(end, Math.min(Math.max(0, until - performance.now()), MAX_TIMER_MS))
    this.#timer.unref() // a run that is no longer awaited must not keep the process alive
    return controller.signal
  }

  /** Tracks an observer that runs in the background. */
  watch(work: PromiseLike<unknown>, onError: (error: unknown) => void): void {
    const observers = (this.#observers ??= new Set())
    const observer = Promise.resolve(work).then(() => undefined, onError)
    observers.add(observer)
    void observer.then(() => observers.delete(observer))
  }

  /** Tracks a shadow hook. `giveUp` is called if it has not answered when the run ends. */
  follow(work: Promise<void>, giveUp: () => void): void {
    const shadows = (this.#shadows ??= new Map())
    shadows.set(work, giveUp)
    void work.then(() => shadows.delete(work))
  }

  /** Waits for observers, for a limited time. Undefined if there are none. */
  drainObservers(): undefined | Promise<void> {
    const observers = this.#observers
    return observers === undefined || observers.size === 0 ? undefined : drain(observers)
  }

  /** Waits for shadow hooks, for a limited time. Those that have not answered by then are recorded as failed. */
  async settleShadows(): Promise<void> {
    const shadows = this.#shadows
    if (shadows === undefined || shadows.size === 0) return
    await waitAtMost(Promise.all(shadows.keys()), DRAIN_MS)
    for (const giveUp of shadows.values()) giveUp()
    shadows.clear()
  }

  /** Removes the listener from the signal, which may live as long as the process, and stops the timer. */
  end(): void {
    if (this.#cancellable) this.#signal.removeEventListener('abort', this.#cancel)
    this.#clearDeadline()
  }

  #clearDeadline(): void {
    clearTimeout(this.#timer)
    this.#controller = undefined
  }

  readonly #cancel = (): void => {
    this.#controller?.abort(this.#signal.reason)
    this.#untilCancel.giveUp(new AgentError('RUN_CANCELLED', 'The run was cancelled.'))
  }
}

async function drain(observers: ReadonlySet<Promise<void>>): Promise<void> {
  const ends = performance.now() + DRAIN_MS
  for (let before = Infinity; observers.size > 0 && observers.size < before;) {
    before = observers.size
    await waitAtMost(Promise.all(observers), ends - performance.now())
  }
}

function limitExceeded(ms: number, by: string): AgentError {
  const message = `The model call was aborted: it exceeded the ${Math.round(ms)} ms that "${by}" allowed.`
  return new AgentError('MODEL_FORBIDDEN', message, { value: { limitedBy: by } })
}

/** Promises that settle with their work, or are all rejected at once. */
export class Waiting {
  /** Not a Set: it mostly has one member, and a Set that loses its only member allocates again. */
  readonly #rejects: ((reason: unknown) => void)[] = []

  for<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#rejects.push(reject)
      work.then(
        (value) => {
          this.#forget(reject)
          resolve(value)
        },
        (error: unknown) => {
          this.#forget(reject)
          reject(error)
        },
      )
    })
  }

  giveUp(reason: unknown): void {
    for (const reject of this.#rejects) reject(reason)
  }

  #forget(reject: (reason: unknown) => void): void {
    const last = this.#rejects.pop()! // takes the place of the removed one: the order does not matter
    if (last !== reject) this.#rejects[this.#rejects.indexOf(reject)] = last
  }
}
