import { setTimeout as delay } from 'node:timers/promises'
import { AgentError } from '../errors.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { Emit } from '../state/event.ts'
import type { Json } from '../state/json.ts'
import type { LedgerRow, TimedLedgerEntry } from '../state/ledger.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'

/** What an effect does: call a model, a tool, a hook with effects or an approver, or wait. */
export type EffectKind = 'inference' | 'tool' | 'hook' | 'approval' | 'sleep'

/** One call to the outside: a model call, a tool call, a hook with `effect: true`, a question to an approver, a pause. */
export type Effect = {
  /** The same on every replay of the run. */
  readonly key: string
  readonly kind: EffectKind
  /** A function, because it is expensive to describe a request and only records and replays need it. */
  readonly input: () => Json
  /** The result to use if a process that died had started the effect. Without it, the effect is performed again. */
  readonly unknown?: (() => Json) | undefined
}

/** The state of a run at a point from which it can be resumed: what a session stores. */
export type Checkpoint = {
  readonly phase: 'inputBlocked' | 'started' | 'step' | 'suspended' | 'ended'
  readonly state: AgentState
  /** The entries of the ledger from this index on. */
  readonly ledgerFrom: (index: number) => readonly (TimedLedgerEntry | LedgerRow)[]
}

/**
 * The one interface through which a run reaches the outside: models, tools, the clock, new ids. Live runs, recorded runs,
 * replays and sessions are implementations of it.
 */
export interface Effects {
  /**
   * Runs one effect under its key, or returns its recorded result, as plain frozen JSON. It returns, throws or rejects as the
   * effect does.
   */
  perform<T extends Json>(effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T>
  /** Waits for work that was started; rejects with HOOK_TIMED_OUT after `ms`. Timeouts are recorded. */
  withTimeout<T>(key: string, ms: number, work: PromiseLike<T>): Promise<T>
  sleep(key: string, ms: number): Promise<void>
  /** A scope with its own clock and ids, for work that runs concurrently or may outlive its caller. */
  scope(name: string): Effects
  /** Advances the clock to that of a scope whose work was awaited. */
  join(scope: Effects): void
  /** Whether the run was cancelled. Checked at fixed points, so that a replay is cancelled at the same one. */
  cancelled(): boolean
  /** The time of the last effect of this scope, in milliseconds since 1970. */
  now(): number
  /** Unique among all runs, and the same on a replay. */
  newId(): string
  /** Undefined if nothing listens, so that `emit?.({…})` costs nothing. */
  readonly emit: Emit | undefined
  readonly signal: AbortSignal
  /** Stores the state before the next effect is performed. Undefined if the run has no session. */
  readonly checkpoint?: (checkpoint: Checkpoint) => void
  /** Resolves when all checkpoints are stored. */
  readonly settle?: () => void | Promise<void>
}

/** Creates the effects of one run. Pass it as `agent.run(input, { effects })`. */
export type EffectsFactory = (run: { readonly signal: AbortSignal; readonly emit: Emit | undefined }) => Effects

/** A source of time. Default: the clock of the system. Tests use `fakeClock` from `hookloop/testing`. */
export interface Clock {
  now(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

// Read once: both are getters, and together they cost as much as reading the clock.
const { performance } = globalThis
const { timeOrigin } = performance

/** Monotonic: a time limit must not jump when the clock of the system is set. */
export const systemClock: Clock = {
  now: () => Math.round(timeOrigin + performance.now()),
  // A sleep without an end must not keep a process alive that has nothing else to do.
  sleep: (ms, signal) =>
    delay(Math.min(ms, MAX_TIMER_MS), undefined, { ref: ms <= MAX_TIMER_MS, ...(signal && { signal }) }).catch(
      () => undefined,
    ),
}

/**
 * Effects that are really performed. This is the default of every run; use it to set the clock or the id of a run.
 *
 * @example
 * const effects = liveEffects({ clock: fakeClock({ auto: true }) })
 * await agent.run('Hello.', { effects })
 */
export function liveEffects(options: { readonly clock?: Clock; readonly id?: string } = {}): EffectsFactory {
  return (run) => new LiveEffects(run, options.clock ?? systemClock, options.id ?? newRunId())
}

let [processId, runs] = ['', 0]

/** Unique among all processes by its first part, and in this process by the second. */
function newRunId(): string {
  if (processId === '') processId = crypto.randomUUID()
  return `${processId}-${(++runs).toString(36)}`
}

/** What implementations have in common: a scope with a clock and ids. */
export abstract class EffectScope {
  readonly signal: AbortSignal
  readonly emit: Emit | undefined
  /** The id of the run. */
  protected readonly run: string
  /** The names of the scopes from the run to this one. The scope of the run has none. */
  protected readonly path: string
  #now: number
  #ids = 0

  constructor(
    { signal, emit }: Pick<Effects, 'signal' | 'emit'>,
    { run, path = '', now }: { readonly run: string; readonly path?: string; readonly now: number },
  ) {
    this.signal = signal
    this.emit = emit
    this.run = run
    this.path = path
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  newId(): string {
    return `${this.run}${this.path}.${++this.#ids}`
  }

  join(scope: Effects): void {
    this.stamp(scope.now())
  }

  /** Advances the clock. It never goes back. */
  protected stamp(time: number): void {
    if (time > this.#now) this.#now = time
  }

  /** The place of a scope inside this one. */
  protected within(name: string): { readonly run: string; readonly path: string; readonly now: number } {
    return { run: this.run, path: `${this.path}/${name}`, now: this.#now }
  }
}

class LiveEffects extends EffectScope implements Effects {
  readonly #clock: Clock
  // Created once: a run has as many effects as it has calls.
  readonly #stampResult = <T>(value: T): T => {
    this.stamp(this.#clock.now())
    return value
  }
  readonly #stampError = (error: unknown): never => {
    this.stamp(this.#clock.now())
    throw error
  }

  constructor(
    run: Pick<Effects, 'signal' | 'emit'>,
    clock: Clock,
    place: string | { readonly run: string; readonly path: string; readonly now: number },
  ) {
    super(run, typeof place === 'string' ? { run: place, now: clock.now() } : place)
    this.#clock = clock
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
      this.signal.removeEventListener('abort', end) // the signal may live as long as the process
      answered.abort()
      ended.abort()
    }
  }

  /** Rejects after `ms`, or after a cancel when the grace period is over. */
  async #timeout(
    key: string,
    ms: number,
    { answered, ended }: { readonly answered: AbortSignal; readonly ended: AbortSignal },
  ): Promise<never> {
    await this.#clock.sleep(ms, ended)
    const cancelled = !answered.aborted && this.signal.aborted
    if (cancelled) await this.#clock.sleep(CANCEL_GRACE_MS, answered)
    if (answered.aborted) return undefined as never
    this.stamp(this.#clock.now()) // only a timeout that fired is recorded, so only it may advance the clock
    throw timedOut(key, cancelled ? CANCEL_GRACE_MS : ms)
  }

  async sleep(_key: string, ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.signal)
    this.stamp(this.#clock.now())
  }

  scope(name: string): Effects {
    return new LiveEffects(this, this.#clock, this.within(name))
  }

  cancelled(): boolean {
    return this.signal.aborted
  }
}

/** How long a hook may take to return after the run was cancelled. */
const CANCEL_GRACE_MS = 5_000

export function timedOut(key: string, ms: number): AgentError {
  return new AgentError('HOOK_TIMED_OUT', `No answer within ${ms} ms.`, { value: { key, ms } })
}
