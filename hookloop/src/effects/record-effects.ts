import { checkArgument } from '../state/check-options.ts'
import { andThen } from '../state/thenable.ts'
import { AgentError, messageOf, toAgentError } from '../errors.ts'
import { sameJson, toJson, type Json } from '../state/json.ts'
import {
  EffectScope,
  liveEffects,
  timedOut,
  type Effect,
  type Effects,
  type EffectsFactory,
  type TimeLimit,
  type Waited,
} from './effects.ts'
import {
  checkRecording,
  Counter,
  RECORDING_VERSION,
  RecordIndex,
  resultOf,
  type ErrorText,
  type RecordEntry,
  type Recording,
} from './recording.ts'
import type { RunEnd, RunTime } from './run-time.ts'
import { UnusedEffects } from './unused-effects.ts'

/**
 * Effects that are performed and recorded. `replayEffects` answers from the recording later.
 *
 * @example
 * const recording = memoryRecording()
 * await agent.run('Hello.', { effects: recordEffects(recording) })
 */
export function recordEffects(recording: Recording, inner: EffectsFactory = liveEffects()): EffectsFactory {
  checkRecording('recordEffects', recording)
  checkArgument('recordEffects', ['inner', inner], typeof inner === 'function', 'a factory such as liveEffects()')
  return (run) => {
    if (recording.entries().length > 0) {
      throw new AgentError('RECORDING_INVALID', 'The recording already has a run. Use a new recording for every run.')
    }
    const effects = inner(run)
    const [id, now] = [effects.newId(), effects.now()]
    const journal = new RecordingJournal(recording, { type: 'run', version: RECORDING_VERSION, id, at: now })
    return new RecordedEffects(effects, new Recorder(journal, { recordsAborts: true }), { run: id, now })
  }
}

export type RunEntry = Exclude<RecordEntry, { type: 'run' }>

/** Where recorded effects write their entries. */
export interface Journal {
  /** Called before the first entry and before checks that write none. */
  start?(): void
  append(entry: RunEntry): void
  /** Called before an effect is performed, also one that was begun before. */
  perform?(): void
  /** Resolves when all entries are stored. */
  flush(): void | Promise<void>
  /** Stores the entries when the process is idle, or with the next `flush`, which reports a failure. */
  flushSoon(): void
}

/** Recordings that a run of this process writes to: two runs may get the same one before either has started. */
const used = new WeakSet<Recording>()

class RecordingJournal implements Journal {
  readonly #recording: Recording
  #first: RecordEntry | undefined
  #failure: AgentError | undefined

  constructor(recording: Recording, first: RecordEntry) {
    this.#recording = recording
    this.#first = first
  }

  /** Writes the first entry only when something happens: a run that is rejected before leaves no trace. */
  start(): void {
    const first = this.#first
    this.#first = undefined
    if (first === undefined) return
    if (used.has(this.#recording) || this.#recording.entries().length > 0) {
      this.#failure = new AgentError('RECORDING_FAILED', 'Another run has started to use the recording.')
      throw this.#failure
    }
    used.add(this.#recording)
    this.#write(first)
  }

  /** A run that cannot be recorded must end: what it did next would be unknown after a crash. */
  append(entry: RunEntry): void {
    this.start()
    this.#write(entry.type === 'begin' ? { ...entry, input: toJson(entry.input) } : entry)
  }

  flush(): void {}
  flushSoon(): void {}

  #write(entry: RecordEntry): void {
    if (this.#failure !== undefined) throw this.#failure // an entry is missing, so none may follow
    try {
      this.#recording.append(entry)
    } catch (error) {
      const why = `The recording cannot be written: ${messageOf(error)}`
      this.#failure = new AgentError('RECORDING_FAILED', why, { cause: error })
      throw this.#failure
    }
  }
}

const nothing = new RecordIndex([])
const EVERYWHERE = '*'

/** What all scopes of one recorded run share: its journal, and what earlier processes have recorded of it. */
export class Recorder {
  readonly journal: Journal
  readonly recordsAborts: boolean
  readonly recordsRequests: boolean
  known: RecordIndex
  /** What was recorded and must be asked for. Undefined if the run may leave it out. */
  unused: UnusedEffects | undefined
  /** Whether effects may differ from what was recorded: the run closes a step that another agent has left open. */
  isClosing: boolean
  /** Whether this process has stored an entry of the run. */
  hasFlushed = false
  /** Set when the run differs from what was recorded. It ends then, and nothing more of it is recorded. */
  diverged: AgentError | undefined
  readonly keys = new Counter()
  readonly #checks = new Counter()
  readonly #noticed = new Map<string, RunEnd>()

  constructor(
    journal: Journal,
    options: {
      readonly entries?: readonly RecordEntry[]
      readonly recordsAborts?: true
      readonly recordsRequests?: boolean
      readonly isClosing?: boolean
    } = {},
  ) {
    const { entries = [] } = options
    this.journal = journal
    this.known = entries.length === 0 ? nothing : new RecordIndex(entries)
    this.isClosing = options.isClosing ?? false
    this.unused = entries.length === 0 || this.isClosing ? undefined : new UnusedEffects(entries)
    this.recordsAborts = options.recordsAborts ?? false
    this.recordsRequests = options.recordsRequests ?? false
  }

  /** Called at a checkpoint: what happened before it is not asked for again, and everything is counted from one. */
  checkpoint(): void {
    this.known = nothing
    this.unused = undefined
    this.isClosing = false
    this.keys.clear()
    this.#checks.clear()
  }

  /** Ends the run: it differs from what was recorded under this key. */
  diverge(key: string): AgentError {
    return (this.diverged ??= diverged(key))
  }

  /**
   * Records the check at which a scope first notices that the run must end. Each scope counts its own checks: agents that
   * run concurrently check in no fixed order.
   */
  checkEnded(end: RunEnd | undefined, scope: string, time: RunTime): RunEnd | undefined {
    this.journal.start?.()
    if (this.known.endedAt.size > 0) this.#recall(time)
    const noticed = this.#noticed.get(EVERYWHERE) ?? this.#noticed.get(scope)
    if (noticed !== undefined) return noticed
    const check = this.#checks.next(scope)
    if (end === undefined) return undefined
    this.#noticed.set(scope, end)
    const stop = end === 'cancel' ? time.stopRequest() : undefined
    this.journal.append({
      type: 'cancel',
      check,
      ...(scope !== '' && { scope }),
      ...(end === 'limit' && { by: 'limit' as const }),
      ...(stop !== undefined && { stop }),
    })
    return end
  }

  /** What was noticed in an earlier process. A cancel ends all scopes. */
  #recall(time: RunTime): void {
    time.stopRequest(this.known.stopRequest)
    for (const [scope, { by }] of this.known.endedAt) this.#noticed.set(by === 'cancel' ? EVERYWHERE : scope, by)
  }
}

/**
 * Effects that are recorded before they are performed and when they have ended. An effect that an earlier process has
 * completed is not performed again. If it was started but has no recorded end, the effect itself says which result to use,
 * or it is performed again.
 */
export class RecordedEffects extends EffectScope implements Effects {
  readonly #inner: Effects
  protected readonly recorder: Recorder

  constructor(
    inner: Effects,
    recorder: Recorder,
    place: { readonly run: string; readonly path?: string; readonly now: number },
  ) {
    super(inner, place)
    this.#inner = inner
    this.recorder = recorder
  }

  perform<T extends Json>(effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    const { recorder } = this
    if (recorder.diverged !== undefined) throw recorder.diverged
    const key = recorder.keys.unique(effect.key)
    const begun = recorder.known.begins.get(key)
    if (begun === undefined) {
      const unused = recorder.unused?.before(key, effect)
      if (unused !== undefined) throw recorder.diverge(unused)
      return this.#begin(key, effect, run)
    }
    recorder.unused?.use(key)
    const end = recorder.known.ends.get(key)?.outcome
    const isSame = sameJson(begun, toJson(effect.input()))
    if (!isSame && !recorder.isClosing && (end !== undefined || effect.kind === 'tool')) throw recorder.diverge(key)
    // A hook that has changed the run at this point does not do so twice, whatever it would get now.
    if (end !== undefined && (isSame || effect.mode === 'transform')) {
      this.stamp(end.at)
      return resultOf<T>(end)
    }
    const mayRepeat = effect.unknown === undefined || (effect.idempotent === true && recorder.known.idempotent.has(key))
    if (mayRepeat) return isSame && end === undefined ? this.#run(key, effect, run) : this.#begin(key, effect, run)
    const value = effect.unknown() as T
    recorder.journal.append({ type: 'end', key, at: this.now(), value })
    return value
  }

  /**
   * The start of an effect is stored before it is performed, except for a model call: it can be repeated, so it runs while
   * its start is being stored. The first entry of a run, with its input, is always stored first.
   */
  #begin<T extends Json>(key: string, effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    const { journal, recordsRequests } = this.recorder
    const { kind, idempotent } = effect
    const at = this.time.clockTime(this.now())
    const request = recordsRequests ? effect.request?.() : undefined
    journal.append({
      type: 'begin',
      key,
      kind,
      input: effect.input(),
      at,
      ...(request !== undefined && { request }),
      ...(idempotent === true && { idempotent }),
    })
    if (effect.kind === 'inference' && this.recorder.hasFlushed) {
      journal.flushSoon()
      return this.#run(key, effect, run)
    }
    this.recorder.hasFlushed = true
    return andThen(journal.flush(), () => this.#run(key, effect, run))
  }

  #run<T extends Json>(key: string, effect: Effect, run: (signal: AbortSignal) => T | Promise<T>): T | Promise<T> {
    let result: T | Promise<T>
    this.recorder.journal.perform?.()
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
   * The result of a tool is stored as soon as the process is idle, which is when the model is called or the next tool waits.
   * That of a model is stored with the next entry, because it can be called again. The answer of an approver or of a hook
   * cannot be repeated, so it is stored before it is used.
   */
  #ended<T extends Json>(key: string, { kind }: Effect, value: T): T | Promise<T> {
    const { journal } = this.recorder
    this.stamp(this.#inner.now())
    journal.append({ type: 'end', key, at: this.now(), value })
    if (kind === 'inference') return value
    if (kind === 'tool') {
      journal.flushSoon()
      return value
    }
    return andThen(journal.flush(), () => value)
  }

  #failed(key: string, thrown: unknown): never {
    this.stamp(this.#inner.now())
    this.recorder.journal.append({ type: 'end', key, at: this.now(), error: errorText(thrown) })
    throw thrown
  }

  async withTimeout<T>(work: PromiseLike<T>, limit: TimeLimit): Promise<T> {
    const { journal, keys, known, recordsAborts } = this.recorder
    const key = limit.key()
    const unique = keys.unique(key)
    if (known.aborts.get(unique) === 'limit') this.time.expire()
    const fired = known.timeouts.get(unique)
    if (fired !== undefined) {
      work.then(undefined, () => undefined)
      this.stamp(fired.at)
      const error = timedOut(key, fired)
      limit.abort?.(error)
      throw error
    }
    const before = this.time.end
    try {
      return await this.#inner.withTimeout(work, limit)
    } catch (thrown) {
      const waited = timeoutOf(thrown, key)
      if (waited !== undefined) {
        this.stamp(this.#inner.now())
        journal.append({ type: 'timeout', key: unique, at: this.now(), ...waited })
      }
      throw thrown
    } finally {
      // A hook may have returned because of it. In the replay it returns at the same point.
      const { end } = this.time
      if (before === undefined && end === 'limit') journal.append({ type: 'abort', key: unique, by: 'limit' })
      if (before === undefined && end === 'cancel' && recordsAborts) journal.append({ type: 'abort', key: unique })
    }
  }

  async sleep(key: string, ms: number): Promise<void> {
    await this.perform({ key, kind: 'sleep', input: () => ms }, async () => {
      await this.#inner.sleep(key, ms)
      return null
    })
  }

  scope(name: string): Effects {
    return new RecordedEffects(this.#inner.scope(name), this.recorder, this.within(name))
  }

  child(name: string, emit: Effects['emit']): Effects {
    return new RecordedEffects(this.#inner.child(name, emit), this.recorder, this.within(name))
  }

  ended(): RunEnd | undefined {
    return this.recorder.checkEnded(this.#inner.ended(), this.path, this.time)
  }
}

/** How long was waited, if the error is the timeout of this key and not one from inside. */
function timeoutOf(error: unknown, key: string): Waited | undefined {
  if (!(error instanceof AgentError) || error.code !== 'HOOK_TIMED_OUT') return undefined
  const { key: fired, ...waited } = error.value as Waited & { readonly key?: string }
  return fired === key ? waited : undefined
}

function errorText(thrown: unknown): ErrorText {
  const { code, message, value } = toAgentError(thrown, 'HOOK_FAILED')
  return value === undefined ? { code, message } : { code, message, value: toJson(value) }
}

function diverged(key: string): AgentError {
  return new AgentError(
    'REPLAY_DIVERGED',
    `The agent has changed since the run was interrupted: it does not ask for "${key}" as it was recorded. Resume with ` +
      "{ onChange: 'close' } to close the open step with what is recorded and to continue with this agent, or resume with " +
      'the agent that started the run.',
    { value: key },
  )
}
