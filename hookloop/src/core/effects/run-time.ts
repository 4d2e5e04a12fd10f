import { AgentError } from '../../errors.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import { stopText, toRequestedStop, type StopRequest } from '../state/stop-request.ts'
import type { Above } from '../state/subagent.ts'
import { MAX_TIMER_MS } from '../../system/timeout.ts'

/** A source of time. Default: the clock of the system. Tests use `fakeClock` from `hookloop/testing`. */
export interface Clock {
  now(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls a function after `ms`, for time limits. Returns a function that prevents that. Default: a timer of the system. */
  after?(ms: number, act: () => void): () => void
}

/** Why a run must end: it was cancelled, or it has reached its time limit. */
export type RunEnd = 'cancel' | 'limit'

/** How long a run may take, and the guard that says so. */
export type RunLimit = { readonly ms: number; readonly by: string }

/** The limits of one piece of work, in addition to those of its run. */
export interface WorkLimit {
  /** How long it may take. `Infinity`: as long as the run. */
  readonly ms: number
  /** Aborts the work when `ms` are over. Returns how much longer it may take to stop. */
  abort(): number
  /** How long it may take to stop after the run has been cancelled or has reached its time limit. */
  graceMs(end: RunEnd): number
  /** The error to continue with when the work has not ended by then. Both are undefined after its own limit. */
  leave(end: RunEnd | undefined, error: AgentError | undefined): unknown
}

/**
 * The time of one run: its cancel signal, its deadline, and what must be done about the work it waits for when it ends. A child
 * ends with its parent.
 */
export class RunTime {
  readonly clock: Clock | undefined
  readonly #parent: RunTime | undefined
  readonly #cancelSignal: AbortSignal | undefined
  readonly #waiting = new Set<Waiting>()
  readonly #children = new Set<RunTime>()
  #controller: AbortController | undefined
  #onCancel: (() => void) | undefined
  #end: RunEnd | undefined
  #error: AgentError | undefined
  #request: StopRequest | undefined
  #next: ((askedUntil: number) => Deadline) | undefined
  /** How many questions are put to approvers now, and until when one was. Of a run, not of its subagents. */
  #asking = 0
  #askedUntil: number
  #isOpen = false
  #stopTimer: (() => void) | undefined

  /** Without a clock, as in a replay, nothing times out by itself. */
  constructor(clock: Clock | undefined, from: AbortSignal | RunTime | undefined) {
    this.clock = clock
    this.#askedUntil = clock?.now() ?? Infinity
    this.#parent = from instanceof RunTime ? from : undefined
    this.#cancelSignal = from instanceof RunTime ? from.#cancelSignal : from
  }

  /** Aborts when the run is cancelled or reaches its deadline. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#open()
      this.#controller = new AbortController()
      if (this.#end !== undefined)
        this.#controller.abort(this.#end === 'cancel' ? this.#cancelSignal?.reason : this.#error)
    }
    return this.#controller.signal
  }

  /** Why the run must end, if it must. */
  get end(): RunEnd | undefined {
    if (this.#end === undefined && this.#cancelSignal?.aborted === true) return 'cancel'
    return this.#end ?? this.#parent?.end
  }

  /** Who asked for the cancel, if it is known: from the record of the run, or by the reason of the signal. */
  stopRequest(recorded?: StopRequest): StopRequest | undefined {
    return (this.#request ??= recorded ?? toRequestedStop(this.#cancelSignal?.reason))
  }

  /** The error that running work is aborted with. */
  get error(): AgentError {
    return this.#error ?? cancelled()
  }

  /** Starts to listen to what ends the run, until `close` is called. */
  #open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    if (this.#parent !== undefined) {
      this.#parent.#open()
      this.#parent.#children.add(this)
      if (this.#parent.#end !== undefined) this.#endBy(this.#parent.#end, this.#parent.#error!)
    } else if (this.#cancelSignal !== undefined) {
      if (this.#cancelSignal.aborted) return this.cancel()
      this.#onCancel = () => this.cancel()
      this.#cancelSignal.addEventListener('abort', this.#onCancel, { once: true })
    }
  }

  /** Removes the listener from a signal that may live as long as the process, and stops the timer. */
  close(): void {
    this.#isOpen = true // from now on it listens to nothing
    if (this.#parent !== undefined) this.#parent.#children.delete(this)
    if (this.#onCancel !== undefined) this.#cancelSignal!.removeEventListener('abort', this.#onCancel)
    this.#next = undefined
    this.#startTimer()
  }

  cancel(): void {
    this.#endBy('cancel', cancelled(), this.#cancelSignal?.reason)
  }

  /** Sets when running work is aborted. It is asked again whenever that matters, because it changes when the run has waited. */
  setDeadline(next: (askedUntil: number) => Deadline): void {
    this.#next = next
    if (this.#parent !== undefined) this.#parent.#children.add(this)
    this.#startTimer()
  }

  /** The time of the clock; Infinity while an approver is asked. */
  get deadline(): number {
    return this.#next?.(this.#until()).at ?? Infinity
  }

  get limit(): RunLimit {
    return this.#next?.(this.#until()).limit ?? this.#parent?.limit ?? { ms: 0, by: 'hookloop' }
  }

  /** Ends the run as its deadline does. For replays: live runs use their clock. */
  expire(): void {
    this.#endBy('limit', timeIsOver(this.limit))
  }

  /** Puts a question. Until it is answered or left open, no limit of the run and its subagents counts the time. */
  async asking<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#parent !== undefined) return this.#parent.asking(ask)
    this.#asking++
    try {
      return await ask()
    } finally {
      if (--this.#asking === 0) this.#askedUntil = this.clock?.now() ?? Infinity
      this.#startTimers()
    }
  }

  /** Until when questions that are open have stopped the time. */
  #until(): number {
    if (this.#parent !== undefined) return this.#parent.#until()
    return this.#asking > 0 ? Infinity : this.#askedUntil
  }

  /** A question is open now. */
  waitsChanged(): void {
    if (this.#parent === undefined) this.#startTimers()
    else this.#parent.waitsChanged()
  }

  #startTimers(): void {
    this.#startTimer()
    for (const child of this.#children) child.#startTimers()
  }

  /** Starts the timer of the deadline. A time beyond the longest timer is only checked between effects. */
  #startTimer(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    if (this.clock === undefined || this.#end !== undefined) return
    const left = this.deadline - this.clock.now()
    if (left <= MAX_TIMER_MS) this.#stopTimer = startTimer(this.clock, left, () => this.expire())
  }

  /** Waits for work. Rejects with the error of `leave` when it has not ended in time; the work itself may continue. */
  wait<T>(work: PromiseLike<T>, limit: WorkLimit): Promise<T> {
    this.#open()
    return new Promise((resolve, reject) => {
      const waiting = new Waiting(this, limit, reject)
      this.#waiting.add(waiting)
      work.then(
        (value) => {
          this.stopWaiting(waiting)
          resolve(value)
        },
        (error: unknown) => {
          this.stopWaiting(waiting)
          reject(error)
        },
      )
      if (limit.ms !== Infinity && this.clock !== undefined) soon(waiting, this.clock)
      if (this.#end !== undefined) waiting.runEnds(this.#end)
    })
  }

  /** Returns why the run must end, if it noticed that. */
  stopWaiting(waiting: Waiting): RunEnd | undefined {
    this.#waiting.delete(waiting)
    waiting.stopTimers()
    return this.#end
  }

  #endBy(end: RunEnd, error: AgentError, reason: unknown = error): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#error = error
    this.#startTimer()
    this.#controller?.abort(reason)
    for (const each of Array.from(this.#waiting)) each.runEnds(end)
    for (const child of this.#children) child.#endBy(end, error, reason)
  }
}

/** A piece of work that is waited for. */
class Waiting {
  readonly #time: RunTime
  readonly #limit: WorkLimit
  readonly #reject: (error: unknown) => void
  readonly #due: number
  /** Whether the work has been aborted. */
  #isAborted = false
  #hasEnded = false
  #stopTimer: (() => void) | undefined
  #stopGrace: (() => void) | undefined

  constructor(time: RunTime, limit: WorkLimit, reject: (error: unknown) => void) {
    this.#time = time
    this.#limit = limit
    this.#reject = reject
    this.#due = limit.ms === Infinity ? Infinity : (time.clock?.now() ?? 0) + limit.ms
  }

  startTimer(clock: Clock): void {
    if (this.#hasEnded) return
    const ms = this.#due - clock.now()
    if (ms <= 0) this.#runOut()
    else this.#stopTimer = startTimer(clock, ms, () => this.#runOut())
  }

  stopTimers(): void {
    this.#hasEnded = true
    this.#stopTimer?.()
    this.#stopGrace?.()
  }

  runEnds(end: RunEnd): void {
    if (!this.#isAborted) this.#leaveAfter(this.#limit.graceMs(end), end)
  }

  #runOut(): void {
    this.#leaveAfter(this.#isAborted ? 0 : this.#limit.abort(), undefined)
  }

  #leaveAfter(ms: number, end: RunEnd | undefined): void {
    this.#isAborted = true
    const { clock } = this.#time
    if (ms === 0) this.#leave(end)
    else if (clock !== undefined) this.#stopGrace = startTimer(clock, ms, () => this.#leave(end))
  }

  #leave(end: RunEnd | undefined): void {
    const noticed = this.#time.stopWaiting(this)
    const ended = end ?? noticed
    this.#reject(this.#limit.leave(ended, ended && this.#time.error))
  }
}

let starting: { readonly waiting: Waiting; readonly clock: Clock }[] = []

/** Starts timers in the next turn of the event loop: most work with a time limit has ended by then, and a timer is expensive. */
function soon(waiting: Waiting, clock: Clock): void {
  if (starting.push({ waiting, clock }) > 1) return
  setImmediate(() => {
    const all = starting
    starting = []
    for (const each of all) each.waiting.startTimer(each.clock)
  })
}

/** The limit of work that is given up at once when the run ends. */
export const untilEnd: WorkLimit = { ms: Infinity, abort: () => 0, graceMs: () => 0, leave: (_end, error) => error }

function startTimer(clock: Clock, ms: number, act: () => void): () => void {
  return clock.after === undefined ? systemTimer(ms, act) : clock.after(ms, act)
}

function systemTimer(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, Math.min(Math.max(0, ms), MAX_TIMER_MS))
  if (ms > MAX_TIMER_MS) timer.unref() // a sleep without an end must not keep a process alive that has nothing else to do
  return () => clearTimeout(timer)
}

function timeIsOver({ ms, by }: RunLimit): AgentError {
  const message = `The run has reached its time limit of ${ms} ms, set by "${by}".`
  return new AgentError('RUN_TIMED_OUT', message, { value: { limitedBy: by } })
}

export function cancelled(): AgentError {
  return new AgentError('RUN_CANCELLED', 'The run was cancelled.')
}

/** The guard whose time limit a failed call has exceeded, if that is why it failed. */
export function limitedBy({ value }: { readonly value?: unknown }): string | undefined {
  const by = (value as { readonly limitedBy?: unknown } | null | undefined)?.limitedBy
  return typeof by === 'string' ? by : undefined
}

/** When the time of a run is over, and by which limit; without one it is never. */
export type Deadline = { readonly at: number; readonly limit: RunLimit | undefined }

/** The limit that a run reaches first, and what is counted of it when the run starts: the time that its ancestor has worked. */
export function earliestLimit(
  budgets: readonly { readonly time?: RunLimit }[],
  ancestors: readonly Above[] | undefined,
): { readonly limit: RunLimit; readonly before: number } | undefined {
  const limits = budgets.flatMap(({ time: limit }, level) =>
    limit === undefined ? [] : [{ limit, before: ancestors?.[level]?.workedMs ?? 0 }],
  )
  return limits.toSorted((a, b) => a.limit.ms - a.before - (b.limit.ms - b.before))[0]
}

/** The vote that ends a run whose time is over. */
export function limitVote({ ms, by }: RunLimit, worked: number): ContinuationEvaluation {
  const value = { value: Math.max(ms, worked), limit: ms }
  const message = `Time limit reached: ${value.value}/${ms} ms.`
  return Object.freeze({ decision: 'forbidContinuation', reason: 'timeLimit', message, source: by, value })
}

const cancelledVote: ContinuationEvaluation = Object.freeze({
  decision: 'forbidContinuation',
  reason: 'userRequested',
  message: 'The run was cancelled.',
  source: 'signal',
})

/** The vote that ends a cancelled run. With the request if it was stopped on one. */
export function cancelVote(request: StopRequest | undefined): ContinuationEvaluation {
  if (request === undefined) return cancelledVote
  return Object.freeze({ ...cancelledVote, message: stopText(request), source: 'stop', value: { ...request } })
}

/** The vote that ends a run whose session has new input. */
export const newInputVote: ContinuationEvaluation = Object.freeze({
  decision: 'forbidContinuation',
  reason: 'userRequested',
  message: 'The user sent a new message.',
  source: 'newInput',
})

// Read once: both are getters, and together they cost as much as reading the clock.
const { performance } = globalThis
const { timeOrigin } = performance

/** Monotonic: a time limit must not jump when the clock of the system is set. */
export const systemClock: Clock = {
  now: () => Math.round(timeOrigin + performance.now()),
  async sleep(ms, signal) {
    if (signal?.aborted === true) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => resolve()
    const stop = systemTimer(ms, wake)
    signal?.addEventListener('abort', wake, { once: true })
    await promise
    signal?.removeEventListener('abort', wake)
    stop()
  },
  after: systemTimer,
}
