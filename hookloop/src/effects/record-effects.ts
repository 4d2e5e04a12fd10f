import type { Emit } from '../state/event.ts'
import { toJson, type Json } from '../state/json.ts'
import { liveEffects, type Effect, type Effects, type EffectsFactory } from './effects.ts'
import { AgentError, messageOf, toAgentError } from '../errors.ts'
import { RECORDING_VERSION, type ErrorText, type Recording, type RecordEntry } from './recording.ts'

/** Effects that really happen and are written down: `agent.run(input, { effects: recordEffects(recording) })`. */
export function recordEffects(recording: Recording, inner: EffectsFactory = liveEffects()): EffectsFactory {
  return (run) => {
    if (recording.entries().length > 0) {
      throw new AgentError('RECORDING_INVALID', 'The recording holds a run already. Record every run in its own.')
    }
    const effects = inner(run)
    const id = effects.newId()
    return new RecordingEffects(effects, new Log(recording, { id, at: effects.now() }), id)
  }
}

/** Recordings that a run of this process writes to: two may be given the same one before either has begun. */
const claimed = new WeakSet<Recording>()

/** What all scopes of one recorded run share. */
class Log {
  readonly #recording: Recording
  readonly #times = new Map<string, number>()
  #start: RecordEntry | undefined
  #failure: AgentError | undefined
  readonly #checks = new CancelChecks()

  constructor(recording: Recording, run: { readonly id: string; readonly at: number }) {
    this.#recording = recording
    this.#start = { type: 'run', version: RECORDING_VERSION, ...run }
  }

  /** A run that cannot be written down must not go on: what it did next would be unknown after a crash. */
  append(entry: RecordEntry): void {
    this.begin()
    this.#write(entry)
  }

  /** Writes the first line, once something happens: a run that is refused before leaves no trace. */
  begin(): void {
    const start = this.#start
    this.#start = undefined
    if (start === undefined) return
    if (claimed.has(this.#recording) || this.#recording.entries().length > 0) {
      this.#failure = new AgentError('RECORDING_FAILED', 'The recording was begun by another run.')
      throw this.#failure
    }
    claimed.add(this.#recording)
    this.#write(start)
  }

  #write(entry: RecordEntry): void {
    if (this.#failure !== undefined) throw this.#failure // a line is missing now, so no other may follow
    try {
      this.#recording.append(entry)
    } catch (error) {
      const why = `The recording cannot be written: ${messageOf(error)}`
      this.#failure = new AgentError('RECORDING_FAILED', why, { cause: error })
      throw this.#failure
    }
  }

  unique(key: string): string {
    const times = (this.#times.get(key) ?? 0) + 1
    this.#times.set(key, times)
    return repeatedKey(key, times)
  }

  sawCancel(cancelled: boolean, scope: string): void {
    this.begin()
    const noticed = this.#checks.look(cancelled, scope)
    if (noticed !== undefined) this.append(noticed)
  }
}

/**
 * How often it was looked whether the run was cancelled. Each scope counts for itself: agents that work at the same time
 * look in an order that is a matter of chance.
 */
export class CancelChecks {
  readonly #checks = new Map<string, number>()
  readonly #noticed = new Set<string>()

  /** What is to be written down, if the scope notices it for the first time. */
  look(cancelled: boolean, scope: string): Extract<RecordEntry, { type: 'cancel' }> | undefined {
    const check = (this.#checks.get(scope) ?? 0) + 1
    this.#checks.set(scope, check)
    if (!cancelled || this.#noticed.has(scope)) return undefined
    this.#noticed.add(scope)
    return { type: 'cancel', check, ...(scope !== '' && { scope }) }
  }

  /** Counts anew from here on. */
  turn(): void {
    this.#checks.clear()
  }
}

class RecordingEffects implements Effects {
  readonly signal: AbortSignal
  readonly emit: Emit | undefined
  readonly #inner: Effects
  readonly #log: Log
  readonly #name: string
  /** The way to this scope from that of the run, which has none. */
  readonly #path: string
  #ids = 0

  constructor(inner: Effects, log: Log, name: string, path = '') {
    this.signal = inner.signal
    this.emit = inner.emit
    this.#inner = inner
    this.#log = log
    this.#name = name
    this.#path = path
  }

  async perform<T extends Json>(effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
    const key = this.#log.unique(effect.key)
    this.#log.append({ type: 'begin', key, kind: effect.kind, input: toJson(effect.input()) })
    let value: T
    try {
      value = await this.#inner.perform(effect, run)
    } catch (error) {
      this.#log.append({ type: 'end', key, at: this.now(), error: errorText(error) })
      throw error
    }
    this.#log.append({ type: 'end', key, at: this.now(), value })
    return value
  }

  async withTimeout<T>(key: string, ms: number, work: PromiseLike<T>): Promise<T> {
    const unique = this.#log.unique(key)
    const aborted = this.signal.aborted
    try {
      return await this.#inner.withTimeout(key, ms, work).finally(() => {
        // A hook that was waiting may have ended because of it; in the replay, it ends at the same point.
        if (!aborted && this.signal.aborted) this.#log.append({ type: 'abort', key: unique })
      })
    } catch (error) {
      const ms = timeoutOf(error, key)
      if (ms !== undefined) this.#log.append({ type: 'timeout', key: unique, at: this.now(), ms })
      throw error
    }
  }

  async sleep(key: string, ms: number): Promise<void> {
    const unique = this.#log.unique(key)
    this.#log.append({ type: 'begin', key: unique, kind: 'sleep', input: ms })
    await this.#inner.sleep(key, ms)
    this.#log.append({ type: 'end', key: unique, at: this.now(), value: null })
  }

  scope(name: string): Effects {
    return new RecordingEffects(this.#inner.scope(name), this.#log, `${this.#name}/${name}`, `${this.#path}/${name}`)
  }

  join(scope: Effects): void {
    if (scope instanceof RecordingEffects) this.#inner.join(scope.#inner)
  }

  cancelled(): boolean {
    const cancelled = this.#inner.cancelled()
    this.#log.sawCancel(cancelled, this.#path)
    return cancelled
  }

  now(): number {
    return this.#inner.now()
  }

  newId(): string {
    return `${this.#name}.${++this.#ids}`
  }
}

/** A key that comes again, as after a retry, is told from the first by its count. */
export function repeatedKey(key: string, times: number): string {
  const plain = key.includes('~') ? key.replaceAll('~', '~~') : key // a hook may have the sign in its name
  return times === 1 ? plain : `${plain}~${times}`
}

/** How long was waited, if this is the timeout of that key and not one that came from inside. */
export function timeoutOf(error: unknown, key: string): number | undefined {
  if (!(error instanceof AgentError) || error.code !== 'HOOK_TIMED_OUT') return undefined
  const fired = error.value as { readonly key?: string; readonly ms?: number } | undefined
  return fired?.key === key ? fired.ms : undefined
}

export function errorText(thrown: unknown): ErrorText {
  const { code, message, value } = toAgentError(thrown, 'HOOK_FAILED')
  return value === undefined ? { code, message } : { code, message, value: toJson(value) }
}
