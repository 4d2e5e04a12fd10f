import { checkOptions } from '../../values/check-options.ts'
import type { Emit } from '../state/event.ts'
import type { Json } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { errorOf, Journal, type Effect, type Place } from './journal.ts'
import { keyId, type EffectKey, type EffectPath } from './keys.ts'
import { RunLog, type Scope } from './log.ts'
import type { CancelRecord } from './records.ts'
import { RunTime, systemClock, untilEnd, type Clock, type RunEnd, type WorkLimit } from './run-time.ts'

/** How long work may take. `key` is the same in every process; `abort` is called when the time is over. */
export interface TimeLimit {
  readonly ms: number
  readonly key: EffectKey
  abort?(error: AgentError): void
}

/** The clock and the id of a run, as `agent.run(input, { effects })` takes them. */
export type EffectsOptions = {
  /** The clock of the run. */
  readonly clock: Clock
  /** The id of the run. Default: a generated one. */
  readonly id?: string | undefined
  /** Gets the events as well. Default none. */
  readonly emit?: Emit
}

/**
 * Sets the clock or the id of a run. Without it, a run uses the clock of the system.
 *
 * @example
 * await agent.run('Hello.', { effects: liveEffects({ clock: fakeClock({ auto: true }) }) })
 */
export function liveEffects(options: { readonly clock?: Clock; readonly id?: string } = {}): EffectsOptions {
  checkOptions('liveEffects', options, ['clock', 'id'])
  return { clock: options.clock ?? systemClock, id: options.id }
}

/** Where events go if there are two listeners. */
export function toBoth(one: Emit | undefined, other: Emit | undefined): Emit | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return (event) => {
    one(event)
    other(event)
  }
}

/** The effects of a run that is not recorded, for hooks that are fired outside of a run. */
export function looseEffects(
  options: { readonly signal?: AbortSignal; readonly emit?: Emit | undefined; readonly clock?: Clock } = {},
): Effects {
  const { signal, emit, clock = systemClock } = options
  const journal = new Journal(new RunLog(), { clock, isNew: true })
  const time = new RunTime(clock, signal)
  return new Effects({ journal, scope: journal.log.root, time, emit, run: newRunId(), now: clock.now() })
}

let [processId, runs] = ['', 0]

/** Unique among all processes by its first part, and in this process by the second. */
export function newRunId(): string {
  if (processId === '') processId = crypto.randomUUID()
  return `${processId}-${(++runs).toString(36)}`
}

/**
 * The one interface through which a run reaches the outside: models, tools, the clock, new ids. A scope has its own clock, for
 * work that runs concurrently.
 */
export class Effects implements Place {
  readonly journal: Journal
  readonly scopeLog: Scope
  readonly path: EffectPath
  /** The deadline of the run, and what it waits for. */
  readonly time: RunTime
  /** The id of the run. Its other ids are made from it. */
  readonly run: string
  readonly #emit: Emit | undefined
  /** Whether the end of a call is repeated that hooks knew before the run waited: observers and events are not. */
  isRepeated = false
  #now: number
  #ids = 1 // the first id is that of a new conversation
  #checks = 0
  /** How often each key was made since the last checkpoint. */
  #keys: Map<string, number> | undefined
  #ended: RunEnd | undefined
  readonly #during: string[] = []
  readonly #parent: Effects | undefined

  constructor(parts: {
    readonly journal: Journal
    readonly scope: Scope
    readonly time: RunTime
    readonly emit: Emit | undefined
    readonly run: string
    readonly now: number
    readonly parent?: Effects
  }) {
    this.journal = parts.journal
    this.scopeLog = parts.scope
    this.path = parts.scope.path
    this.time = parts.time
    this.run = parts.run
    this.#emit = parts.emit
    this.#now = parts.now
    this.#parent = parts.parent
  }

  /** Undefined if nothing listens, or if what happens was emitted before, which a session recognizes itself. */
  get emit(): Emit | undefined {
    if (this.#emit === undefined || this.isRepeated) return undefined
    return this.journal.isLive || this.journal.isStored ? this.#emit : undefined
  }

  /** Where events go, also while the run repeats what is recorded. */
  get listener(): Emit | undefined {
    return this.#emit
  }

  /** Aborts when the run is cancelled or reaches its time limit. */
  get signal(): AbortSignal {
    return this.time.signal
  }

  /** Performs an effect once, under a key that is the same in every process. Returns the recorded result if there is one. */
  perform<T extends Json>(effect: Effect, act: (signal: AbortSignal, beganAt: number) => T | Promise<T>): Promise<T> {
    return this.journal.perform<T>(this, effect, (beganAt) => act(this.signal, beganAt))
  }

  /**
   * Waits for work that was started. Rejects with HOOK_TIMED_OUT after `ms`, or a moment after the run was cancelled or has
   * reached its time limit. Timeouts are recorded.
   */
  withTimeout<T>(work: PromiseLike<T>, limit: TimeLimit): Promise<T> {
    const { cancel, hasTimeouts } = this.scopeLog
    if (this.journal.tape !== undefined && cancel?.during?.includes(keyId(limit.key)) === true) this.#follow(cancel)
    const late = hasTimeouts ? this.#recordedTimeout(limit) : undefined
    if (late === undefined) return this.time.wait(work, new RecordedLimit(this, limit))
    work.then(undefined, () => undefined)
    return Promise.reject(late)
  }

  /** Records that a hook was not waited for any longer. */
  noteTimeout(key: EffectKey, waited: Waited): AgentError {
    const error = timedOut(key, waited)
    const at = this.clockTime()
    this.stamp(at)
    this.journal.endedLate(this.scopeLog, key, error, at)
    return error
  }

  /** Called when the run ends while a hook is running. */
  endedDuring(key: EffectKey): void {
    if (this.#parent !== undefined) this.#parent.endedDuring(key)
    else this.#during.push(keyId(key))
  }

  /** The error of work that timed out in an earlier process. */
  #recordedTimeout(limit: TimeLimit): Error | undefined {
    const end = this.journal.recorded(this.scopeLog, limit.key)
    if (end?.error === undefined) return undefined
    this.stamp(end.at)
    const error = errorOf(end.error)
    limit.abort?.(error)
    return error
  }

  /** A key that is unique in its step: what is done again has the number of the repetition in its key. */
  keyOf(key: EffectKey): EffectKey {
    if (this.#parent !== undefined) return this.#parent.keyOf(key)
    const id = keyId(key)
    const nth = (this.#keys ??= new Map<string, number>()).get(id) ?? 0
    this.#keys.set(id, nth + 1)
    return nth === 0 ? key : { ...key, n: `${key.n} #${nth}` }
  }

  /** Pauses. A process that continues the run waits for the rest of the time. */
  async sleep(key: EffectKey, ms: number): Promise<void> {
    const { clock } = this.journal
    const effect: Effect = { key, input: () => ms }
    await this.perform(effect, async (signal, beganAt) => {
      const left = Math.max(0, beganAt + ms - clock!.now())
      await this.time.wait(clock!.sleep(left, signal), untilEnd).catch((error: unknown) => {
        if (this.time.end === undefined) throw error // at the end of the run, the pause only ends early
      })
      return null
    })
  }

  /** The effects of the same run, again from its last checkpoint. */
  fromCheckpoint(): Effects {
    const { journal, scopeLog: scope, time, run } = this
    journal.startAgain()
    return new Effects({ journal, scope, time, run, emit: this.#emit, now: scope.at })
  }

  /** A scope with its own clock, for work that runs concurrently or may outlive its caller. */
  scope(): Effects {
    const { journal, scopeLog: scope, time, run } = this
    return new Effects({ journal, scope, time, run, emit: this.#emit, now: this.#now, parent: this })
  }

  /** The scope of a subagent, with its own deadline and events. Its time ends with that of this scope. */
  child(path: EffectPath, emit: Emit | undefined): Effects {
    const { journal, run } = this
    const scope = journal.log.scope(path)
    const last = path.at(-1)!
    const id = `${run}/${last.step}.${last.call}${last.n === 0 ? '' : `.${last.n}`}`
    const now = scope.at === 0 ? this.#now : scope.at
    return new Effects({ journal, scope, time: new RunTime(journal.clock, this.time), emit, run: id, now })
  }

  /** Advances the clock to that of a scope whose work was awaited. */
  join(scope: Effects): void {
    this.stamp(scope.now())
  }

  /** Advances the clock. It never goes back. */
  stamp(time: number): void {
    if (time > this.#now) this.#now = time
  }

  /** The time of the last effect of this scope, in milliseconds since 1970. */
  now(): number {
    return this.#now
  }

  /** The time of the clock. A replay has none: the time of its last effect. */
  clockTime(): number {
    return this.journal.clock?.now() ?? this.#now
  }

  /** The id of the conversation, if the run starts one. */
  get agentId(): string {
    return `${this.run}.1`
  }

  /** Unique among all runs, and the same in every process. */
  newId(): string {
    return `${this.run}.${++this.#ids}`
  }

  /**
   * Why the run must end, if it must. Each call is a check: it is recorded at which one the run noticed its end, so that another
   * process, and a replay, notice it at the same point.
   */
  checkEnd(): RunEnd | undefined {
    if (this.#parent !== undefined) return this.#parent.checkEnd()
    if (this.#ended !== undefined) return this.#ended
    const { cancel } = this.scopeLog
    const check = ++this.#checks
    if (cancel !== undefined && (check >= cancel.check || (this.journal.isLive && this.journal.tape === undefined))) {
      this.#ended = cancel.end
      this.#follow(cancel)
      return cancel.end
    }
    if (cancel !== undefined || this.journal.tape !== undefined) return undefined // a replay ends as it is recorded
    const end = this.time.end ?? (this.#now >= this.time.deadline ? 'limit' : undefined)
    if (end === undefined) return undefined
    this.#ended = end
    const stop = end === 'cancel' ? this.time.stopRequest() : undefined
    const during = this.#during.length > 0 && { during: this.#during }
    this.journal.noteEnd(this.scopeLog, { at: this.#now, check, end, ...(stop !== undefined && { stop }), ...during })
    return end
  }

  /** The end was noticed when the run was to be paused: it goes on from its checkpoint, and notices it first of all. */
  noticeFirst(): void {
    const { cancel } = this.scopeLog
    if (cancel === undefined) return
    const { at, end, stop, during } = cancel // and not its place in the log
    const more = { ...(stop !== undefined && { stop }), ...(during !== undefined && { during }) }
    this.journal.noteEnd(this.scopeLog, { at, check: 1, end, ...more })
  }

  #follow({ end, stop }: CancelRecord): void {
    if (end === 'limit') return this.time.expire()
    this.time.stopRequest(stop)
    this.time.cancel()
  }

  /** At a checkpoint, everything is counted from one again. */
  nextStep(): void {
    this.#checks = 0
    this.#keys = undefined
  }
}

/** A time limit whose timeout is recorded. Every hook that is awaited has one, so it is no set of closures. */
class RecordedLimit implements WorkLimit {
  readonly #effects: Effects
  readonly #limit: TimeLimit

  constructor(effects: Effects, limit: TimeLimit) {
    this.#effects = effects
    this.#limit = limit
  }

  get ms(): number {
    return this.#limit.ms
  }

  abort(): number {
    this.#limit.abort?.(timedOut(this.#limit.key, this.#limit))
    return 0
  }

  graceMs(end: RunEnd): number {
    this.#effects.endedDuring(this.#limit.key)
    return HOOK_GRACE_MS[end]
  }

  leave(after: RunEnd | undefined): AgentError {
    const waited = after === undefined ? { ms: this.ms } : { ms: HOOK_GRACE_MS[after], after }
    return this.#effects.noteTimeout(this.#limit.key, waited)
  }
}

/** How long a hook may take to return after the run was cancelled, or has reached its time limit. */
const HOOK_GRACE_MS = { cancel: 5_000, limit: 1_000 } as const

/** How long a hook was waited for; `after`: since the run was cancelled, or had reached its time limit. */
type Waited = { readonly ms: number; readonly after?: RunEnd }

/** Whether the error is that of work that did not stop when the run had reached its time limit. */
export function isLeftByLimit(error: unknown): boolean {
  if (!(error instanceof AgentError) || error.code !== 'HOOK_TIMED_OUT') return false
  return (error.value as Partial<Waited> | undefined)?.after === 'limit'
}

const since = { cancel: ' after the run was cancelled', limit: ' after the run had reached its time limit' } as const

export function timedOut({ hook = '' }: Pick<EffectKey, 'hook'>, { ms, after }: Waited): AgentError {
  const message = `No answer within ${ms} ms${after === undefined ? '' : since[after]}.`
  const value = { hook, ms, ...(after !== undefined && { after }) }
  return new AgentError('HOOK_TIMED_OUT', message, { value })
}

const leaving = new WeakMap<Journal, readonly (() => Promise<void>)[]>()

/** Calls a function when this process no longer works on a run: it has ended, or is suspended. */
export function onLeave({ journal }: Effects, act: () => Promise<void>): void {
  leaving.set(journal, [...(leaving.get(journal) ?? []), act])
}

/** Calls these functions. Undefined if there are none. */
export function leaveRun({ journal }: Effects): Promise<unknown> | undefined {
  const acts = leaving.get(journal)
  leaving.delete(journal)
  return acts && Promise.allSettled(acts.map((act) => act()))
}
