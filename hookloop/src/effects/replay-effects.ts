import type { Emit } from '../state/event.ts'
import { canonicalText, sameJson, toJson, type Json } from '../state/json.ts'
import { timedOut, type Effect, type Effects, type EffectsFactory } from './effects.ts'
import { AgentError } from '../errors.ts'
import { repeatedKey } from './record-effects.ts'
import { parseRecording, formatRecording, type Recording, type RecordEntry } from './recording.ts'

/**
 * Effects that do not happen: every answer comes from the recording, and only to the question that was recorded. No
 * model is called, no tool is run; a run that asks for something else fails with REPLAY_DIVERGED and the place's name.
 */
export function replayEffects(recording: Recording): EffectsFactory {
  // Through the parser, so that entries from anywhere are checked once and frozen.
  const [first, ...entries] = parseRecording(formatRecording(recording))
  if (first?.type !== 'run') throw new AgentError('RECORDING_INVALID', 'The recording is empty: nothing was run.')
  const { id, at } = first
  const index = new RecordIndex(entries)
  if (index.repeated !== undefined) throw new AgentError('RECORDING_INVALID', `"${index.repeated}" begins twice.`)
  return ({ signal, emit }) => new ReplayEffects(new Reading(index, signal), { emit, name: id, now: at })
}

type Outcome = Extract<RecordEntry, { type: 'end' }>

/** What a recording says, or a piece of one, by key. */
export class RecordIndex {
  readonly begins = new Map<string, Json>()
  /** Waits during which the signal aborted. */
  readonly aborts = new Set<string>()
  readonly ends = new Map<string, { readonly outcome: Outcome; readonly line: number }>()
  readonly timeouts = new Map<string, { readonly at: number; readonly ms: number }>()
  /** By scope, the check at which it was noticed that the run was cancelled. */
  readonly cancelledAt = new Map<string, number>()
  /** Whether whoever took the run over found it cancelled. */
  readonly cancelledBefore: boolean
  readonly lastBegin: number
  /** A key that was begun more than once: by processes that died, or by mistake. */
  readonly repeated: string | undefined

  constructor(entries: readonly RecordEntry[]) {
    let cancelledBefore = false
    let lastBegin = 0
    let repeated: string | undefined
    for (const [i, entry] of entries.entries()) {
      if (entry.type === 'begin') {
        if (this.begins.has(entry.key)) repeated ??= entry.key
        this.begins.set(entry.key, entry.input)
        lastBegin = i + 1
      }
      if (entry.type === 'end') this.ends.set(entry.key, { outcome: entry, line: i + 1 })
      if (entry.type === 'abort') this.aborts.add(entry.key)
      if (entry.type === 'timeout') this.timeouts.set(entry.key, entry)
      if (entry.type === 'cancel') {
        this.cancelledAt.set(entry.scope ?? '', entry.check)
        cancelledBefore ||= entry.check === 0
      }
    }
    this.cancelledBefore = cancelledBefore
    this.lastBegin = lastBegin
    this.repeated = repeated
  }
}

/** One replay of a record: how far it has come. */
export class Reading {
  #index: RecordIndex
  #times = new Map<string, number>()
  #checks = new Map<string, number>()
  readonly #cancelled = new Set<string>()
  /** The line up to which the replay has come. */
  #last = 0

  /** Aborts where it did in the recorded run, or when whoever replays it says so. */
  readonly controller = new AbortController()
  readonly signal: AbortSignal

  constructor(index: RecordIndex, signal: AbortSignal) {
    this.#index = index
    this.signal = AbortSignal.any([signal, this.controller.signal]) // leaves nothing behind on one that lives longer
  }

  /** Goes on with the next piece of the record, in which everything is counted anew. */
  turn(index: RecordIndex): void {
    this.#index = index
    this.#times = new Map()
    this.#checks = new Map()
    this.#last = 0
  }

  outcome(key: string, input: Json): Outcome {
    const unique = this.#next(key)
    const recorded = this.#index.begins.get(unique)
    if (recorded === undefined && this.#last >= this.#index.lastBegin) throw incomplete(unique)
    if (recorded === undefined) {
      throw new AgentError('REPLAY_DIVERGED', `The recording knows nothing of "${unique}": the run took another way.`, {
        value: unique,
      })
    }
    if (!sameJson(recorded, input)) {
      const texts = `recorded ${canonicalText(recorded)}, asked for ${canonicalText(input)}`
      throw new AgentError('REPLAY_DIVERGED', `"${unique}" was asked something else than recorded: ${texts}.`, {
        value: unique,
      })
    }
    const end = this.#index.ends.get(unique)
    if (end === undefined) throw incomplete(unique)
    this.#last = Math.max(this.#last, end.line)
    return end.outcome
  }

  timeout(key: string): { readonly at: number; readonly ms: number } | undefined {
    const unique = this.#next(key)
    if (this.#index.aborts.has(unique)) this.controller.abort()
    return this.#index.timeouts.get(unique)
  }

  cancelled(scope: string): boolean {
    const check = (this.#checks.get(scope) ?? 0) + 1
    this.#checks.set(scope, check)
    const at = this.#index.cancelledBefore ? 0 : (this.#index.cancelledAt.get(scope) ?? Infinity)
    if (check >= at) this.#cancelled.add(scope)
    if (!this.#cancelled.has(scope)) return false
    this.controller.abort()
    return true
  }

  #next(key: string): string {
    const times = (this.#times.get(key) ?? 0) + 1
    this.#times.set(key, times)
    return repeatedKey(key, times)
  }
}

type Replayed = {
  readonly emit: Emit | undefined
  readonly name: string
  readonly now: number
  /** The way to this scope from that of the run, which has none. */
  readonly path?: string
}

export class ReplayEffects implements Effects {
  readonly signal: AbortSignal
  readonly emit: Emit | undefined
  readonly #reading: Reading
  readonly #name: string
  readonly #path: string
  #now: number
  #ids = 0

  constructor(reading: Reading, { emit, name, now, path = '' }: Replayed) {
    this.#reading = reading
    this.signal = reading.signal
    this.emit = emit
    this.#name = name
    this.#path = path
    this.#now = now
  }

  async perform<T extends Json>(effect: Effect): Promise<T> {
    const end = this.#reading.outcome(effect.key, toJson(effect.input()))
    this.stamp(end.at)
    if ('value' in end) return end.value as T
    throw new AgentError(end.error.code, end.error.message, { value: end.error.value })
  }

  async withTimeout<T>(key: string, _ms: number, work: PromiseLike<T>): Promise<T> {
    const fired = this.#reading.timeout(key)
    if (fired === undefined) return work
    work.then(undefined, () => undefined)
    this.stamp(fired.at)
    throw timedOut(key, fired.ms)
  }

  async sleep(key: string, ms: number): Promise<void> {
    this.stamp(this.#reading.outcome(key, ms).at)
  }

  scope(name: string): Effects {
    const [own, path] = [`${this.#name}/${name}`, `${this.#path}/${name}`]
    return new ReplayEffects(this.#reading, { emit: this.emit, name: own, now: this.#now, path })
  }

  join(scope: Effects): void {
    this.stamp(scope.now())
  }

  cancelled(): boolean {
    return this.#reading.cancelled(this.#path)
  }

  now(): number {
    return this.#now
  }

  newId(): string {
    return `${this.#name}.${++this.#ids}`
  }

  /** It is so late now. */
  protected stamp(time: number): void {
    if (time > this.#now) this.#now = time
  }
}

function incomplete(key: string): AgentError {
  return new AgentError('REPLAY_INCOMPLETE', `The recording ends before "${key}" did.`, { value: key })
}
