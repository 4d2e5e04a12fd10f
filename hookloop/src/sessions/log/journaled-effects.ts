import type { AgentState } from '../../state/agent-state.ts'
import type { Emit } from '../../state/event.ts'
import { sameJson, toJson, type Json } from '../../state/json.ts'
import { diffState } from '../../state/state-diff.ts'
import { timedOut, type Checkpoint, type Effect, type Effects } from '../../effects/effects.ts'
import { AgentError } from '../../errors.ts'
import { CancelChecks, errorText, repeatedKey, timeoutOf } from '../../effects/record-effects.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import type { SessionRecord } from './session-records.ts'

/** Where a session is written down. */
export interface Journal {
  append(record: SessionRecord): void
  /** Stores what was appended, before it resolves. */
  store(): void | Promise<void>
  /** Stores it when there is time, or with whatever is stored next. If that fails, the next `store` does. */
  flushSoon(): void
}

type Outcome = Extract<RecordEntry, { type: 'end' }>

/** What is known of a piece of a run that was begun by a process that is gone. */
class Known {
  readonly begins = new Map<string, Json>()
  readonly ends = new Map<string, Outcome>()
  readonly timeouts = new Map<string, { readonly at: number; readonly ms: number }>()
  readonly wasCancelled: boolean

  constructor(entries: readonly RecordEntry[]) {
    for (const entry of entries) {
      if (entry.type === 'begin') this.begins.set(entry.key, entry.input)
      if (entry.type === 'end') this.ends.set(entry.key, entry)
      if (entry.type === 'timeout') this.timeouts.set(entry.key, entry)
    }
    this.wasCancelled = entries.some((entry) => entry.type === 'cancel')
  }
}

const nothingKnown = new Known([])

/** What all scopes of one journaled run share. */
class Shared {
  readonly journal: Journal
  known: Known
  /** The state that was stored last, and how much of the ledger. */
  stored: AgentState | undefined
  ledger: number
  readonly onCheckpoint: JournalOptions['onCheckpoint']
  /** Whether this process has stored anything of the run. */
  hasStored = false
  /** Set when the run is not the one that was written down: it ends, and of that nothing is stored. */
  diverged: AgentError | undefined
  readonly #times = new Map<string, number>()
  readonly #checks = new CancelChecks()
  #cancelled = false

  constructor({ journal, entries, stored, ledger, onCheckpoint }: JournalOptions) {
    this.onCheckpoint = onCheckpoint
    this.journal = journal
    this.known = new Known(entries)
    this.stored = stored
    this.ledger = ledger
  }

  unique(key: string): string {
    const times = (this.#times.get(key) ?? 0) + 1
    this.#times.set(key, times)
    return repeatedKey(key, times)
  }

  /** From here on, nothing that happened before is asked for again. */
  turn(): void {
    this.known = nothingKnown
    this.#times.clear()
    this.#checks.turn()
  }

  sawCancel(cancelled: boolean, scope: string): boolean {
    if (this.known.wasCancelled) this.#cancelled = true // before this process took the run over
    if (this.#cancelled) return true
    const noticed = this.#checks.look(cancelled, scope)
    if (noticed !== undefined) this.journal.append(noticed)
    return cancelled
  }
}

export type JournalOptions = {
  readonly journal: Journal
  /** What happened since the state was stored last. */
  readonly entries: readonly RecordEntry[]
  readonly stored: AgentState | undefined
  /** How much of the ledger was stored. */
  readonly ledger: number
  readonly name: string
  readonly now: number
  /** Told of every state that is stored, before it is stored. */
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

/**
 * Effects of a run in a session. Each is written down before it happens and when it has happened. One that is known to
 * have happened is not done again; of one that was begun and is not known to have ended, the effect itself says what to
 * go on with, or it is done again.
 */
export class JournaledEffects implements Effects {
  readonly signal: AbortSignal
  readonly emit: Emit | undefined
  readonly #inner: Effects
  readonly #shared: Shared
  readonly #name: string
  /** The way to this scope from that of the run, which has none. */
  readonly #path: string
  #now: number
  #ids = 0

  private constructor(inner: Effects, shared: Shared, name: string, now: number, path = '') {
    this.signal = inner.signal
    this.emit = inner.emit
    this.#inner = inner
    this.#shared = shared
    this.#name = name
    this.#path = path
    this.#now = now
  }

  static over(inner: Effects, options: JournalOptions): JournaledEffects {
    return new JournaledEffects(inner, new Shared(options), options.name, options.now)
  }

  perform<T extends Json>(effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    const shared = this.#shared
    if (shared.diverged !== undefined) throw shared.diverged
    const key = shared.unique(effect.key)
    const begun = shared.known.begins.get(key)
    if (begun === undefined) return this.#start(key, effect, run)
    const end = shared.known.ends.get(key)
    const isSame = sameJson(begun, toJson(effect.input()))
    if (!isSame && (end !== undefined || effect.kind === 'tool')) throw (shared.diverged = diverged(key))
    if (end !== undefined) return this.#replay<T>(end)
    if (effect.unknown === undefined) return isSame ? this.#do(key, effect, run) : this.#start(key, effect, run)
    const value = effect.unknown() as T
    this.#append({ type: 'end', key, at: this.#now, value })
    return value
  }

  /** Answers with what is known. */
  #replay<T extends Json>(end: Outcome): T {
    this.#stamp(end.at)
    if ('value' in end) return end.value as T
    throw new AgentError(end.error.code, end.error.message, { value: end.error.value })
  }

  /**
   * Nothing happens before it is stored that it will, but for what may be done again: a model is asked while it is being
   * stored. What was said to the run is stored before anything.
   */
  #start<T extends Json>(key: string, effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    const { journal } = this.#shared
    this.#append({ type: 'begin', key, kind: effect.kind, input: effect.input() })
    if (effect.kind === 'inference' && this.#shared.hasStored) {
      journal.flushSoon()
      return this.#do(key, effect, run)
    }
    this.#shared.hasStored = true
    const storing = journal.store()
    return storing instanceof Promise ? storing.then(() => this.#do(key, effect, run)) : this.#do(key, effect, run)
  }

  #do<T extends Json>(key: string, effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    let result: T | Promise<T>
    try {
      result = this.#inner.perform(effect, run)
    } catch (thrown) {
      return this.#failed(key, thrown)
    }
    if (!(result instanceof Promise)) return this.#ended(key, effect, result)
    return result.then(
      (value) => this.#ended(key, effect, value),
      (thrown: unknown) => this.#failed(key, thrown),
    )
  }

  /**
   * What a tool did is stored as soon as the process has nothing else to do, which is when the model is asked or the next
   * tool waits; an answer of a model with what comes next, for it can be asked again. A person, or a hook, cannot.
   */
  #ended<T extends Json>(key: string, { kind }: Effect, value: T): T | Promise<T> {
    this.#stamp(this.#inner.now())
    this.#append({ type: 'end', key, at: this.#now, value })
    if (kind === 'inference') return value
    if (kind === 'tool') {
      this.#shared.journal.flushSoon()
      return value
    }
    const storing = this.#shared.journal.store()
    return storing instanceof Promise ? storing.then(() => value) : value
  }

  #failed(key: string, thrown: unknown): never {
    this.#stamp(this.#inner.now())
    this.#append({ type: 'end', key, at: this.#now, error: errorText(thrown) })
    throw thrown
  }

  async withTimeout<T>(key: string, ms: number, work: PromiseLike<T>): Promise<T> {
    const unique = this.#shared.unique(key)
    const fired = this.#shared.known.timeouts.get(unique)
    if (fired !== undefined) {
      work.then(undefined, () => undefined)
      this.#stamp(fired.at)
      throw timedOut(key, fired.ms)
    }
    try {
      return await this.#inner.withTimeout(key, ms, work)
    } catch (thrown) {
      const waited = timeoutOf(thrown, key)
      if (waited !== undefined) {
        this.#stamp(this.#inner.now())
        this.#append({ type: 'timeout', key: unique, at: this.#now, ms: waited })
      }
      throw thrown
    }
  }

  async sleep(key: string, ms: number): Promise<void> {
    await this.perform({ key, kind: 'sleep', input: () => ms }, async () => {
      await this.#inner.sleep(key, ms)
      return null
    })
  }

  scope(name: string): Effects {
    const [own, path] = [`${this.#name}/${name}`, `${this.#path}/${name}`]
    return new JournaledEffects(this.#inner.scope(name), this.#shared, own, this.#now, path)
  }

  join(scope: Effects): void {
    this.#stamp(scope.now())
  }

  cancelled(): boolean {
    return this.#shared.sawCancel(this.#inner.cancelled(), this.#path)
  }

  now(): number {
    return this.#now
  }

  newId(): string {
    return `${this.#name}.${++this.#ids}`
  }

  checkpoint(checkpoint: Checkpoint): void {
    const { phase, state, ledgerFrom } = checkpoint
    const shared = this.#shared
    if (shared.diverged !== undefined) return
    shared.onCheckpoint?.(checkpoint)
    const ledger = ledgerFrom(shared.ledger)
    const diff = diffState(shared.stored, state)
    shared.journal.append({ type: 'state', phase, at: this.#now, diff, ...(ledger.length > 0 && { ledger }) })
    shared.stored = state
    shared.ledger += ledger.length
    shared.turn()
  }

  settle(): void | Promise<void> {
    return this.#shared.diverged === undefined ? this.#shared.journal.store() : undefined
  }

  #append(entry: SessionRecord): void {
    this.#shared.journal.append(entry)
  }

  #stamp(time: number): void {
    if (time > this.#now) this.#now = time
  }
}

function diverged(key: string): AgentError {
  return new AgentError(
    'REPLAY_DIVERGED',
    `"${key}" was begun with something else than it would be now: the agent has other hooks, tools or instructions ` +
      'than when the run was cut off. Resume it with the agent it began with.',
    { value: key },
  )
}
