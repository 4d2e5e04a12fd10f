import { setTimeout as delay } from 'node:timers/promises'
import type { AgentState } from '../state/agent-state.ts'
import type { Emit } from '../state/event.ts'
import type { Json } from '../state/json.ts'
import type { LedgerRow, TimedLedgerEntry } from '../state/ledger.ts'
import { AgentError } from '../errors.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'

/** What an effect does: call a model, a tool, a hook with effects or an approver, or wait. */
export type EffectKind = 'inference' | 'tool' | 'hook' | 'approval' | 'sleep'

/**
 * One thing that is not a function of the state. The key is the same on every replay of the run; the input is asked for
 * only by those who record or compare it, because a long run could not afford to describe every request.
 */
export type Effect = {
  readonly key: string
  readonly kind: EffectKind
  readonly input: () => Json
  /** What to go on with when it was begun by a process that died, and nobody knows how it ended. Without it, it is done again. */
  readonly unknown?: (() => Json) | undefined
}

/** The state of a run where it can be gone on from, and how far the run was: what a session keeps. */
export type Checkpoint = {
  readonly phase: 'inputBlocked' | 'started' | 'step' | 'suspended' | 'ended'
  readonly state: AgentState
  /** Entries of the ledger from this one on. */
  readonly ledgerFrom: (index: number) => readonly (TimedLedgerEntry | LedgerRow)[]
}

/** The one port through which a run touches the world. Running, recording and replaying are implementations of it. */
export interface Effects {
  /**
   * Runs one effect under its key, or answers from a record of it, with plain, frozen JSON. It may answer at once where
   * the effect does, and throws or rejects as it does.
   */
  perform<T extends Json>(effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T>
  /** Waits for work that was begun, at most so long; rejects with HOOK_TIMED_OUT. A timeout that fired is recorded. */
  withTimeout<T>(key: string, ms: number, work: PromiseLike<T>): Promise<T>
  sleep(key: string, ms: number): Promise<void>
  /** Its own clock and ids for work that runs beside other work, or may outlive what waits for it. */
  scope(name: string): Effects
  /** Takes over the time of a scope whose work has been waited for. */
  join(scope: Effects): void
  /** Whether the run was cancelled, as of now. Asked at fixed points, so that a replay is cancelled at the same one. */
  cancelled(): boolean
  /** The time stamped on the last effect of this scope, in milliseconds since 1970. */
  now(): number
  /** Unique among all runs, and the same on a replay. */
  newId(): string
  /** Missing when nobody listens, so that `emit?.({…})` costs nothing. */
  readonly emit: Emit | undefined
  readonly signal: AbortSignal
  /** Keeps the state, where a session is kept; missing when nobody does. It is stored before the next effect happens. */
  readonly checkpoint?: (checkpoint: Checkpoint) => void
  /** Resolves when everything that was kept is stored. */
  readonly settle?: () => void | Promise<void>
}

/** Makes the effects of one run. */
export type EffectsFactory = (run: { readonly signal: AbortSignal; readonly emit: Emit | undefined }) => Effects

/** Where time comes from. The system's by default; a test brings its own. */
export interface Clock {
  now(): number
  /** Resolves after so many milliseconds; never rejects, and resolves at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

// Looked up once: both are getters, and together they cost as much as reading the clock.
const { performance } = globalThis
const { timeOrigin } = performance

/** Monotonic: a limit on time must not jump when somebody sets the clock. */
export const systemClock: Clock = {
  now: () => Math.round(timeOrigin + performance.now()),
  // A wait without an end is none: it must not keep a process that has nothing else left to do.
  sleep: (ms, signal) =>
    delay(Math.min(ms, MAX_TIMER_MS), undefined, { ref: ms <= MAX_TIMER_MS, ...(signal && { signal }) }).catch(
      () => undefined,
    ),
}

/** Effects that really happen. */
export function liveEffects(options: { readonly clock?: Clock; readonly id?: string } = {}): EffectsFactory {
  return ({ signal, emit }) => new LiveEffects(signal, emit, options.clock ?? systemClock, options.id ?? newRunId())
}

let [processId, runs] = ['', 0]

/** Unique among all processes by its beginning, and within this one by its end. */
function newRunId(): string {
  if (processId === '') processId = crypto.randomUUID()
  return `${processId}-${(++runs).toString(36)}`
}

class LiveEffects implements Effects {
  readonly signal: AbortSignal
  readonly emit: Emit | undefined
  readonly #clock: Clock
  readonly #name: string
  #now: number
  #ids = 0
  // Made once: a run has as many effects as it has calls.
  readonly #stampResult = <T>(value: T): T => {
    this.#stamp(this.#clock.now())
    return value
  }
  readonly #stampError = (error: unknown): never => {
    this.#stamp(this.#clock.now())
    throw error
  }

  constructor(signal: AbortSignal, emit: Emit | undefined, clock: Clock, name: string, now = clock.now()) {
    this.signal = signal
    this.emit = emit
    this.#clock = clock
    this.#name = name
    this.#now = now
  }

  perform<T extends Json>(_effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    let result: T | Promise<T>
    try {
      result = run(this.signal)
    } catch (error) {
      return this.#stampError(error)
    }
    if (result instanceof Promise) return result.then(this.#stampResult<T>, this.#stampError)
    return this.#stampResult(result)
  }

  async withTimeout<T>(key: string, ms: number, work: PromiseLike<T>): Promise<T> {
    const [answered, ended] = [new AbortController(), new AbortController()]
    const end = (): void => ended.abort()
    this.signal.addEventListener('abort', end, { once: true })
    if (this.signal.aborted) end()
    const timeout = this.#timeout(key, ms, { answered: answered.signal, ended: ended.signal })
    try {
      return await Promise.race([work, timeout])
    } finally {
      this.signal.removeEventListener('abort', end) // it may live as long as the process
      answered.abort()
      ended.abort()
    }
  }

  /** Rejects when the time is over; after a cancel, when the grace is. */
  async #timeout(
    key: string,
    ms: number,
    { answered, ended }: { readonly answered: AbortSignal; readonly ended: AbortSignal },
  ): Promise<never> {
    await this.#clock.sleep(ms, ended)
    const cancelled = !answered.aborted && this.signal.aborted
    if (cancelled) await this.#clock.sleep(CANCEL_GRACE_MS, answered)
    if (answered.aborted) return undefined as never
    this.#stamp(this.#clock.now()) // only a timeout that fired is recorded, so only it may move the clock
    throw timedOut(key, cancelled ? CANCEL_GRACE_MS : ms)
  }

  async sleep(_key: string, ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.signal)
    this.#stamp(this.#clock.now())
  }

  scope(name: string): Effects {
    return new LiveEffects(this.signal, this.emit, this.#clock, `${this.#name}/${name}`, this.#now)
  }

  join(scope: Effects): void {
    this.#stamp(scope.now())
  }

  cancelled(): boolean {
    return this.signal.aborted
  }

  now(): number {
    return this.#now
  }

  newId(): string {
    return `${this.#name}.${++this.#ids}`
  }

  #stamp(time: number): void {
    if (time > this.#now) this.#now = time
  }
}

/** How long a hook may take to answer once the run was cancelled. */
const CANCEL_GRACE_MS = 5_000

export function timedOut(key: string, ms: number): AgentError {
  return new AgentError('HOOK_TIMED_OUT', `No answer within ${ms} ms.`, { value: { key, ms } })
}
