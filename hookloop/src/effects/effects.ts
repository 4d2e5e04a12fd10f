import { optionTypes } from '../state/option-types.ts'
import { checkArgument, checkOptions } from '../state/check-options.ts'
import { AgentError } from '../errors.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { Emit, OwnEvent } from '../state/event.ts'
import type { FinalRecord } from '../state/execution.ts'
import type { Json, JsonObject } from '../state/json.ts'
import type { LedgerRow, TimedLedgerEntry } from '../state/ledger.ts'
import { RunTime, systemClock, untilEnd, type Clock, type RunEnd, type Wait, type WorkLimit } from './run-time.ts'

/** What an effect does: call a model, a tool, a hook with effects or an approver, or wait. */
export type EffectKind = 'inference' | 'tool' | 'hook' | 'approval' | 'sleep'

/** One call to the outside: a model call, a tool call, a hook with `effect: true`, a question to an approver, a pause. */
export type Effect = {
  /** The same on every replay of the run. */
  readonly key: string
  readonly kind: EffectKind
  /** A function, because it is expensive to describe a request and only records and replays need it. */
  readonly input: () => Json
  /** The whole request of a model call. Only runs that record requests need it. */
  readonly request?: () => JsonObject
  /** The result to use if a process that died had started the effect. Without it, the effect is performed again. */
  readonly unknown?: (() => Json) | undefined
  /** Whether it is performed again instead. It must have been so when it was started, too. */
  readonly idempotent?: boolean
  /** The mode of the hook, if it is the effect of one. */
  readonly mode?: 'transform' | 'guard' | 'observe'
}

/** The state of a run at a point from which it can be resumed: what a session stores. */
export type Checkpoint = {
  readonly phase: 'inputBlocked' | 'started' | 'step' | 'suspended' | 'ended'
  readonly state: AgentState
  /** Why the run ended without an execution, which would have it. */
  readonly final?: FinalRecord | undefined
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
  /**
   * Waits for work that was started. Rejects with HOOK_TIMED_OUT after `ms`, or a moment after the run was cancelled or has
   * reached its time limit. Timeouts are recorded.
   */
  withTimeout<T>(work: PromiseLike<T>, limit: TimeLimit): Promise<T>
  /**
   * The same for a caller that awaits the work itself and then calls `time.exit`. `leave` is called instead of rejecting.
   * Missing where timeouts are recorded or replayed.
   */
  limit?(limit: TimeLimit, leave: (error: unknown) => void): Wait
  sleep(key: string, ms: number): Promise<void>
  /** A scope with its own clock and ids, for work that runs concurrently or may outlive its caller. */
  scope(name: string): Effects
  /** The scope of a subagent, with its own deadline and events. Its time ends with that of this scope. */
  child(name: string, emit: Emit | undefined): Effects
  /** Advances the clock to that of a scope whose work was awaited. */
  join(scope: Effects): void
  /** Why the run must end, if it must. Checked at fixed points, so that a replay ends at the same one. */
  ended(): RunEnd | undefined
  /** The time of the last effect of this scope, in milliseconds since 1970. */
  now(): number
  /** Unique among all runs, and the same on a replay. */
  newId(): string
  /** The id of the run. Its other ids are made from it. */
  readonly run: string
  /** Undefined if nothing listens, so that `emit?.({…})` costs nothing. */
  readonly emit: Emit | undefined
  /** The deadline of the run, and what it waits for. */
  readonly time: RunTime
  /** Aborts when the run is cancelled or reaches its time limit. */
  readonly signal: AbortSignal
  /** Stores a fact about a subagent, for a process that cannot repeat what this one did. Undefined if the run has no session. */
  readonly storeResult?: (key: string, input: Json, value: Json) => void
  /** Stores the state before the next effect is performed. Undefined if the run has no session. */
  readonly checkpoint?: (checkpoint: Checkpoint) => void
  /** Resolves when all checkpoints are stored, with the last event of the run. */
  readonly settle?: (end: OwnEvent) => void | Promise<void>
}

/** How long work may take. `key` is the same on every replay; `abort` is called when the time is over. */
export interface TimeLimit {
  readonly ms: number
  key(): string
  abort?(error: AgentError): void
}

/** Creates the effects of one run. Pass it as `agent.run(input, { effects })`. */
export type EffectsFactory = (run: {
  readonly signal: AbortSignal | undefined
  readonly emit: Emit | undefined
}) => Effects

/** The effects of a run. Throws if the function that a caller gave returns none. */
export function makeEffects(factory: EffectsFactory, run: Parameters<EffectsFactory>[0]): Effects {
  const made = factory(run)
  const isMade = typeof (made as Partial<Effects> | undefined | null)?.perform === 'function'
  if (!isMade) checkArgument('run', ['effects', made], isMade, 'a function that returns effects, such as liveEffects()')
  return made
}

/**
 * Effects that are really performed. This is the default of every run; use it to set the clock or the id of a run.
 *
 * @example
 * const effects = liveEffects({ clock: fakeClock({ auto: true }) })
 * await agent.run('Hello.', { effects })
 */
export function liveEffects(options: { readonly clock?: Clock; readonly id?: string } = {}): EffectsFactory {
  checkOptions('liveEffects', options, { clock: optionTypes.any, id: optionTypes.text })
  const { clock = systemClock, id } = options
  const isClock = typeof clock === 'object' && clock !== null && 'now' in clock && 'sleep' in clock
  checkArgument('liveEffects', ['clock', clock], isClock, 'a clock with now() and sleep()')
  return ({ signal, emit }) => {
    const time = new RunTime(clock, signal)
    return new LiveEffects({ time, emit }, clock, { run: id ?? newRunId(), path: '', now: clock.now() })
  }
}

let [processId, runs] = ['', 0]

/** Unique among all processes by its first part, and in this process by the second. */
function newRunId(): string {
  if (processId === '') processId = crypto.randomUUID()
  return `${processId}-${(++runs).toString(36)}`
}

/** What implementations have in common: a scope with a clock and ids. */
export abstract class EffectScope {
  readonly time: RunTime
  readonly emit: Emit | undefined
  readonly run: string
  /** The names of the scopes from the run to this one. The scope of the run has none. */
  protected readonly path: string
  #now: number
  #ids = 0

  constructor(
    { time, emit }: Pick<Effects, 'time' | 'emit'>,
    { run, path = '', now }: { readonly run: string; readonly path?: string; readonly now: number },
  ) {
    this.time = time
    this.emit = emit
    this.run = run
    this.path = path
    this.#now = now
  }

  get signal(): AbortSignal {
    return this.time.signal
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
    run: Pick<Effects, 'time' | 'emit'>,
    clock: Clock,
    place: { readonly run: string; readonly path: string; readonly now: number },
  ) {
    super(run, place)
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

  withTimeout<T>(work: PromiseLike<T>, limit: TimeLimit): Promise<T> {
    return this.time.wait(work, new HookLimit(limit, this.#stampResult))
  }

  limit(limit: TimeLimit, leave: (error: unknown) => void): Wait {
    return this.time.enter(new HookLimit(limit, this.#stampResult), leave)
  }

  async sleep(_key: string, ms: number): Promise<void> {
    await this.time.wait(this.#clock.sleep(ms, this.signal), untilEnd).catch((error: unknown) => {
      if (this.time.end === undefined) throw error // at the end of the run, the pause only ends early
    })
    this.stamp(this.#clock.now())
  }

  scope(name: string): Effects {
    return new LiveEffects(this, this.#clock, this.within(name))
  }

  child(name: string, emit: Emit | undefined): Effects {
    return new LiveEffects({ time: new RunTime(this.#clock, this.time), emit }, this.#clock, this.within(name))
  }

  ended(): RunEnd | undefined {
    return this.time.end ?? (this.now() >= this.time.deadline ? 'limit' : undefined)
  }
}

/** How long a hook may take to return after the run was cancelled, or has reached its time limit. */
const HOOK_GRACE_MS = { cancel: 5_000, limit: 1_000 } as const

/** The limits of a hook or a schema. */
class HookLimit implements WorkLimit {
  readonly ms: number
  readonly #limit: TimeLimit
  readonly #stamp: (error: AgentError) => AgentError

  constructor(limit: TimeLimit, stamp: (error: AgentError) => AgentError) {
    this.ms = limit.ms
    this.#limit = limit
    this.#stamp = stamp
  }

  abort(): number {
    this.#limit.abort?.(timedOut(this.#limit.key(), { ms: this.ms }))
    return 0
  }

  graceMs(end: RunEnd): number {
    return HOOK_GRACE_MS[end]
  }

  /** Only a timeout that fired is recorded, so only it may advance the clock. */
  leave(end: RunEnd | undefined): AgentError {
    const waited = end === undefined ? { ms: this.ms } : { ms: HOOK_GRACE_MS[end], after: end }
    return this.#stamp(timedOut(this.#limit.key(), waited))
  }
}

/** How long a hook was waited for; `after`: since the run was cancelled, or had reached its time limit. */
export type Waited = { readonly ms: number; readonly after?: RunEnd }

/** Whether the error is that of work that did not stop when the run had reached its time limit. */
export function isLeftByLimit(error: unknown): boolean {
  if (!(error instanceof AgentError) || error.code !== 'HOOK_TIMED_OUT') return false
  return (error.value as Partial<Waited> | undefined)?.after === 'limit'
}

const since = { cancel: ' after the run was cancelled', limit: ' after the run had reached its time limit' } as const

export function timedOut(key: string, { ms, after }: Waited): AgentError {
  const message = `No answer within ${ms} ms${after === undefined ? '' : since[after]}.`
  return new AgentError('HOOK_TIMED_OUT', message, {
    value: { key, ms, ...(after !== undefined && { after }) },
  })
}

/** Whether effects are really performed: the time of a replay has no clock. */
export function isLive({ time }: Effects): boolean {
  return !Number.isNaN(time.clockTime(Number.NaN))
}

const leaving = new WeakMap<RunTime, readonly (() => Promise<void>)[]>()

/** Calls a function when this process no longer works on a run: it has ended, or is suspended. */
export function onLeave({ time }: Effects, act: () => Promise<void>): void {
  leaving.set(time, [...(leaving.get(time) ?? []), act])
}

/** Calls these functions. Undefined if there are none. */
export function leaveRun({ time }: Effects): Promise<unknown> | undefined {
  const acts = leaving.get(time)
  leaving.delete(time)
  return acts && Promise.allSettled(acts.map((act) => act()))
}
