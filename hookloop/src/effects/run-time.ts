import { AgentError } from '../errors.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import { stopText, toRequestedStop, type StopRequest } from '../state/stop-request.ts'
import type { Above } from '../state/subagent.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'

/** A source of time. Default: the clock of the system. Tests use `fakeClock` from `hookloop/testing`. */
export interface Clock {
  now(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls a function after `ms`, for time limits. Returns a function that prevents that. Default: by `sleep`. */
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

/** Work that is waited for. */
interface Wait {
  readonly limit: WorkLimit
  /** Called with the error of `leave` when the work has not ended in time. */
  reject(reason: unknown): void
  /** Its position in the list; -1 when it is no longer waited for. */
  index: number
  /** When something must be done about it: it is aborted, or left behind. */
  due: number
  isAborted: boolean
}

/**
 * The time of one run: its cancel signal, its deadline, and everything that it waits for. Work that ends at once costs no
 * timer: only what is still waited for in the next turn of the event loop is given one, and all of it shares the same.
 */
export class RunTime {
  readonly #clock: Clock | undefined
  readonly #parent: RunTime | undefined
  readonly #cancelSignal: AbortSignal | undefined
  #waits: Wait[] | undefined
  #children: Set<RunTime> | undefined
  #controller: AbortController | undefined
  #onCancel: (() => void) | undefined
  #end: RunEnd | undefined
  #error: AgentError | undefined
  #request: StopRequest | undefined
  #deadline = Infinity
  #limit: RunLimit | undefined
  /** How often the deadline was suspended, and since when. */
  #holds = 0
  #heldSince = 0
  #isOpen = false
  #isChecking = false
  #stopTimer: (() => void) | undefined
  #timerDue = Infinity

  /** Without a clock, as in a replay, nothing times out by itself. A child ends with its parent. */
  constructor(clock: Clock | undefined, from: AbortSignal | RunTime | undefined) {
    this.#clock = clock
    this.#parent = from instanceof RunTime ? from : undefined
    this.#cancelSignal = from instanceof RunTime ? from.#cancelSignal : from
  }

  /** The time of the clock. A replay has none: the time of its last effect. */
  clockTime(lastEffect: number): number {
    return this.#clock?.now() ?? lastEffect
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
      this.#parent.#children ??= new Set()
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
    if (this.#parent !== undefined) this.#parent.#children?.delete(this)
    if (this.#onCancel !== undefined) this.#cancelSignal!.removeEventListener('abort', this.#onCancel)
    this.#deadline = Infinity
    this.#clearTimer()
  }

  cancel(): void {
    this.#endBy('cancel', cancelled(), this.#cancelSignal?.reason)
  }

  /** Sets the time of the clock at which running work is aborted, and the limit that this follows from. */
  setDeadline(at: number, limit: RunLimit): void {
    if (at === this.#deadline) return
    this.#deadline = at
    this.#limit = limit
    if (this.#stopTimer !== undefined && at < this.#timerDue) this.#check()
  }

  get deadline(): number {
    return this.#deadline
  }

  get limit(): RunLimit {
    return this.#limit ?? this.#parent?.limit ?? { ms: 0, by: 'hookloop' }
  }

  /** Ends the run as its deadline does. For replays: live runs use their clock. */
  expire(): void {
    this.#endBy('limit', timeIsOver(this.limit))
  }

  /** Suspends the deadline while an approver is asked: no limit counts that time. */
  hold(): void {
    if (this.#holds++ === 0) this.#heldSince = this.#clock?.now() ?? 0
    this.#parent?.hold()
  }

  release(): void {
    if (--this.#holds === 0) this.#deadline += (this.#clock?.now() ?? 0) - this.#heldSince
    this.#parent?.release()
  }

  /** Waits for work. Rejects with the error of `leave` when it has not ended in time; the work itself may continue. */
  wait<T>(work: PromiseLike<T>, limit: WorkLimit): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const wait = this.#enter({ limit, reject, index: -1, due: Infinity, isAborted: false })
      work.then(
        (value) => void (this.#exit(wait) && resolve(value)),
        (error: unknown) => void (this.#exit(wait) && reject(error)),
      )
    })
  }

  #enter(wait: Wait): Wait {
    this.#open()
    const { ms } = wait.limit
    const waits = (this.#waits ??= [])
    if (ms !== Infinity && this.#clock !== undefined) wait.due = this.#clock.now() + ms
    wait.index = waits.push(wait) - 1
    if (this.#end !== undefined) this.#abort(wait, this.#end)
    if (!this.#isChecking) {
      this.#isChecking = true
      setImmediate(look, this)
    }
    return wait
  }

  /** Ends a wait. Returns false if it had ended already. */
  #exit(wait: Wait): boolean {
    const { index } = wait
    if (index === -1) return false
    const waits = this.#waits! // not a Set: it mostly has one member, and a Set that loses its only member allocates again
    const last = waits.pop()! // takes the place of the removed one: the order does not matter
    if (last !== wait) waits[(last.index = index)] = last
    wait.index = -1
    if (waits.length === 0 && this.#stopTimer !== undefined) this.#clearTimer()
    return true
  }

  /** Called in the next turn of the event loop. */
  look(): void {
    this.#isChecking = false
    this.#check()
  }

  /** Aborts and leaves what is due, and sets the timer for what is due next. */
  #check(atLeast = 0): void {
    const waits = this.#waits
    if (waits === undefined || waits.length === 0 || this.#clock === undefined) return
    const now = Math.max(this.#clock.now(), atLeast) // a timer may fire a moment before its time by the clock
    if (now >= this.#deadline && this.#holds === 0) this.expire()
    let next = this.#end === undefined && this.#holds === 0 ? this.#deadline : Infinity
    for (const wait of waits.slice()) {
      if (wait.due <= now) this.#timeOut(wait, now)
      if (wait.index !== -1 && wait.due < next) next = wait.due
    }
    this.#setTimer(next, now)
  }

  #timeOut(wait: Wait, now: number): void {
    if (!wait.isAborted) {
      wait.isAborted = true
      const grace = wait.limit.abort()
      wait.due = now + grace
      if (grace > 0) return
      this.#leave(wait, undefined)
    } else {
      this.#leave(wait, this.#end)
    }
  }

  #leave(wait: Wait, end: RunEnd | undefined): void {
    this.#exit(wait)
    wait.reject(wait.limit.leave(end, end && this.error))
  }

  #setTimer(due: number, now: number): void {
    if (this.#stopTimer !== undefined && this.#timerDue <= due && this.#timerDue > now) return
    this.#clearTimer()
    if (due === Infinity || this.#waits!.length === 0) return
    this.#timerDue = due
    this.#stopTimer = startTimer(this.#clock!, due - now, () => {
      this.#stopTimer = undefined
      this.#check(due)
    })
  }

  #clearTimer(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#timerDue = Infinity
  }

  #endBy(end: RunEnd, error: AgentError, reason: unknown = error): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#error = error
    this.#controller?.abort(reason)
    for (const wait of this.#waits?.slice() ?? []) this.#abort(wait, end)
    for (const child of this.#children ?? []) child.#endBy(end, error, reason)
    this.#check()
  }

  #abort(wait: Wait, end: RunEnd): void {
    if (wait.isAborted) return
    const grace = wait.limit.graceMs(end)
    if (grace === 0) return this.#leave(wait, end)
    wait.isAborted = true
    if (this.#clock !== undefined) wait.due = Math.min(wait.due, this.#clock.now() + grace)
  }
}

const look = (time: RunTime): void => time.look()

/** The limit of work that is given up at once when the run ends. */
export const untilEnd: WorkLimit = { ms: Infinity, abort: () => 0, graceMs: () => 0, leave: (_end, error) => error }

function startTimer(clock: Clock, ms: number, act: () => void): () => void {
  if (clock.after !== undefined) return clock.after(ms, act)
  const stopped = new AbortController()
  void clock.sleep(ms, stopped.signal).then(() => {
    if (!stopped.signal.aborted) act()
  })
  return () => stopped.abort()
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

/** The limit that is reached first, and when: of a run that has started then, or of its ancestors. */
export function earliestLimit(
  budgets: readonly { readonly time?: RunLimit }[],
  start: number,
  ancestors: readonly Above[] | undefined,
): readonly [number, RunLimit | undefined] {
  let [first, limit]: [number, RunLimit | undefined] = [Infinity, undefined]
  for (let level = 0; level < budgets.length; level++) {
    const { time } = budgets[level]!
    if (time === undefined) continue
    const at = start + time.ms - (ancestors?.[level]?.workedMs ?? 0)
    if (at < first) [first, limit] = [at, time]
  }
  return [first, limit]
}

/** The vote that ends a run whose time is over. */
export function limitVote({ deadline, limit }: RunTime, now: number): ContinuationEvaluation {
  const { ms, by } = limit
  const value = { value: ms + Math.max(0, now - deadline), limit: ms }
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
    const stop = systemClock.after!(ms, wake)
    signal?.addEventListener('abort', wake, { once: true })
    await promise
    signal?.removeEventListener('abort', wake)
    stop()
  },
  after(ms, act) {
    const timer = setTimeout(act, Math.min(Math.max(0, ms), MAX_TIMER_MS))
    if (ms > MAX_TIMER_MS) timer.unref() // a sleep without an end must not keep a process alive that has nothing else to do
    return () => clearTimeout(timer)
  },
}
