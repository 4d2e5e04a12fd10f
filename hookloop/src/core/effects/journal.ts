import type { AgentState } from '../state/agent-state.ts'
import { sameJson, type Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { FinalRecord } from '../state/execution.ts'
import { diffState, stateChange } from '../state/state-diff.ts'
import type { Approval } from '../state/tool-call.ts'
import { noTokens, type TokenUsage } from '../state/usage.ts'
import { AgentError, toAgentError, type ErrorCode } from '../../errors.ts'
import { toJson } from '../../values/json.ts'
import type { EffectKey, EffectKind } from './keys.ts'
import { withDeferred, type Entry, type RunLog, type Scope } from './log.ts'
import type {
  CancelRecord,
  EndOfRunRecord,
  EndRecord,
  ErrorText,
  PauseRecord,
  RunRecord,
  StepRecord,
} from './records.ts'
import type { Clock } from './run-time.ts'

// The only file about recording, crashes, approvals and replays. The rest of the loop asks for effects and makes checkpoints.

/** One call to the outside: a model call, a tool call, a subagent, a question, a hook with `effect: true`, a pause. */
export type Effect = {
  /** The same in every process that runs the step. */
  readonly key: EffectKey
  /** What is done. A function, because only records need it. */
  readonly input: () => Json
  /** Whether it may be performed again if it has no end. */
  readonly idempotent?: boolean
  /** Whether no approver is asked: such a question needs no begin. */
  readonly isInstant?: boolean
  /** The result of an effect that began in a process that died. Without it, the effect is performed again. */
  readonly unknown?: (() => Json) | undefined
}

/** What must not be repeated: its begin is stored before it happens. */
const storedFirst: ReadonlySet<EffectKind> = new Set(['tool', 'attempt', 'child', 'ask', 'sleep'])
/** What cannot be had again: its result is stored before it is used. */
const kept: ReadonlySet<EffectKind> = new Set(['ask', 'hook', 'infer'])

/** Where hooks may ask and act when a step has closed. */
const ofStepEnd: ReadonlySet<string | undefined> = new Set(['afterStep', 'onStop'])

/** Where the records of a run are stored. */
export interface RecordSink {
  append(record: RunRecord): void
  /** Resolves when all records are stored. Throws or rejects if they cannot be. */
  flush(): void | Promise<void>
  /** Stores the records when the process is idle, or with the next `flush`. */
  flushSoon(): void
  /** Throws if records could not be stored: then nothing new begins. */
  check?(): void
  /** Called with each new state of the run. */
  checkpoint?(state: AgentState, record: RunRecord): void
  /** Called when this process runs the open step again. */
  startAgain?(): void
}

/** The records of a run that is replayed: they answer every effect, and nothing is performed. */
export interface Tape {
  /** What is recorded of an effect. `act` runs a subagent over its own records. */
  perform<T extends Json>(
    scope: Scope,
    effect: Effect,
    entry: Entry | undefined,
    act: () => T | Promise<T>,
  ): Promise<Done>
  /** Compares a checkpoint with the recorded one. Returns the state to continue with. */
  checkpoint(scope: Scope, record: StepRecord | EndOfRunRecord, state: AgentState): AgentState
  /** Whether there is another step, if that is a fact. */
  continues(scope: Scope): boolean | undefined
  /** After an error: the state behind the open step, if the replay can continue there, and how the run ended, if it did. */
  skip(thrown: unknown, open: OpenState): { readonly state: AgentState; readonly final?: FinalRecord } | undefined
}

type OpenState = { readonly state: AgentState; readonly ledger: readonly TimedLedgerEntry[] }

/** Thrown by replays for an effect of a hook without a recorded result: the hook is treated as having no opinion. */
export class Unanswered extends Error {}

/** The run waits for people, or is paused. It passes through everything and is recorded by nothing. */
export class Suspended extends Error {
  readonly questions: readonly Approval[]

  constructor(questions: readonly Approval[] = []) {
    super('suspended')
    this.questions = questions
  }
}

/** How an effect has ended, and when. */
export type Done = Pick<EndRecord, 'value' | 'error' | 'at'>

/** Where and when effects happen. */
export interface Place {
  readonly scopeLog: Scope
  /** The time of the clock. */
  clockTime(): number
  /** Advances the time of the run. */
  stamp(at: number): void
}

export class Journal {
  readonly log: RunLog
  readonly clock: Clock | undefined
  readonly tape: Tape | undefined
  readonly #sink: RecordSink | undefined
  #hasActed: boolean

  constructor(
    log: RunLog,
    options: {
      readonly clock: Clock | undefined
      readonly sink?: RecordSink | undefined
      readonly tape?: Tape | undefined
      /** Whether this process has started the run, and not loaded it. */
      readonly isNew?: boolean
    },
  ) {
    this.log = log
    this.clock = options.clock
    this.tape = options.tape
    this.#sink = options.sink
    this.#hasActed = options.isNew ?? false
  }

  /** Whether what happens now happens for the first time: nothing recorded is left, or something new was done. */
  get isLive(): boolean {
    return this.tape === undefined && (this.#hasActed || this.log.isAllRead)
  }

  /** This process runs the open step again: nothing of it happens for the first time. */
  startAgain(): void {
    this.#hasActed = false
    this.log.unreadAll()
    this.#sink?.startAgain?.()
  }

  get isStored(): boolean {
    return this.#sink !== undefined
  }

  /** Performs an effect, or returns what is recorded of it. An error is a result, too. */
  async perform<T extends Json>(place: Place, effect: Effect, act: (beganAt: number) => T | Promise<T>): Promise<T> {
    const { key, unknown } = effect
    const scope = place.scopeLog
    const entry = scope.find(key)
    if (entry !== undefined) entry.isRead = true
    const began = place.clockTime()
    if (this.tape !== undefined)
      return resultAt<T>(place, await this.tape.perform(scope, effect, entry, () => act(began)))
    if (entry?.end !== undefined) return resultAt<T>(place, entry.end)
    this.#sink?.check?.()
    if (entry !== undefined && unknown !== undefined) {
      this.#hasActed = true
      return resultAt<T>(place, this.#end(scope, effect, { value: unknown(), at: began }))
    }
    if (entry === undefined || key.kind !== 'child') this.#hasActed = true // a subagent repeats its own records first
    if (entry === undefined && isBegun(effect)) {
      this.#begin(scope, effect, began)
      await this.flush()
    }
    let value: T
    try {
      value = await act(entry?.begin?.at ?? began)
    } catch (thrown) {
      const at = place.clockTime()
      if (!passes(thrown)) this.#end(scope, effect, { error: errorText(thrown, 'HOOK_FAILED'), at, began })
      place.stamp(at)
      throw thrown
    }
    this.#hasActed = true
    const { at } = this.#end(scope, effect, { value, at: place.clockTime(), began })
    if (kept.has(key.kind) && effect.isInstant !== true) await this.flush()
    place.stamp(at)
    return value
  }

  #begin(scope: Scope, { key, input, idempotent }: Effect, at: number): void {
    this.append({ t: 'begin', at, ...pathOf(scope), key, input: input(), ...(idempotent === true && { idempotent }) })
  }

  #end(scope: Scope, effect: Effect, { began, ...ended }: Done & Pick<EndRecord, 'began'>): Done {
    const hasBegin = isBegun(effect)
    this.append({
      t: 'end',
      ...pathOf(scope),
      key: effect.key,
      ...ended,
      ...(!hasBegin && began !== undefined && { began }),
      ...(!hasBegin && this.#sink !== undefined && { input: effect.input() }),
    })
    this.#sink?.flushSoon()
    return ended
  }

  /** Records that a hook timed out, as its end. */
  endedLate(scope: Scope, key: EffectKey, error: AgentError, at: number): void {
    if (this.tape !== undefined || scope.find(key) !== undefined) return
    this.append({ t: 'end', ...pathOf(scope), key, error: errorText(error, 'HOOK_FAILED'), at })
  }

  /** The recorded end of something that this process does not perform itself, such as the timeout of a hook. */
  recorded(scope: Scope, key: EffectKey): EndRecord | undefined {
    const entry = scope.find(key)
    if (entry !== undefined) entry.isRead = true
    return entry?.end
  }

  /** Whether there is another step: as it is decided now, or as it is recorded. */
  continues(scope: Scope, shouldContinue: boolean): boolean {
    return this.tape?.continues(scope) ?? shouldContinue
  }

  /** What recorded effects have cost that the run did not ask for. A replay of a subagent has those of its later steps. */
  unreadUsage({ id, path }: Scope): TokenUsage {
    return this.tape !== undefined && path.length > 0 ? noTokens : this.log.unreadUsage(id)
  }

  noteEnd(scope: Scope, record: Omit<CancelRecord, 't' | 'path'>): void {
    if (this.tape !== undefined) return
    this.setLive()
    this.append({ t: 'cancel', ...pathOf(scope), ...record })
  }

  /** From now on, what happens is not in the records of an earlier process. */
  setLive(): void {
    this.#hasActed = true
  }

  /** The end of a step is new, also if something is recorded that the step has not asked for; unless that is of its end. */
  closeStep(scope: Scope): void {
    const left = [...scope.entries.values()].filter(({ isRead, key }) => !isRead && ofStepEnd.has(key.trigger))
    if (left.length === 0) this.setLive()
  }

  /** Stores the state of a run between two steps. Its effects are in it, so the journal of the step is dropped. */
  async checkpoint(
    scope: Scope,
    {
      state: after,
      ledger,
      at,
      final,
      ended,
    }: {
      readonly state: AgentState
      readonly ledger: readonly TimedLedgerEntry[]
      readonly at: number
      /** Of a run that ended without an execution. */
      readonly final?: FinalRecord | undefined
      /** The last step, if this is the end of the run or of the subagent. */
      readonly ended?: number | undefined
    },
  ): Promise<AgentState> {
    const isRoot = scope.path.length === 0
    const before = scope.state
    const state = isRoot ? withDeferred(after, this.log.deferred, before) : after
    const isStored = this.#sink !== undefined || this.tape !== undefined
    const change = isStored && before !== state ? diffState(before, state) : {}
    const rest = { at, change, ...(ledger.length > 0 && { ledger }) }
    const record: StepRecord | EndOfRunRecord =
      isRoot && ended !== undefined
        ? { t: 'final', ended, ...rest, ...(final !== undefined && { final }) }
        : { t: 'step', ...rest, ...pathOf(scope), ...(ended !== undefined && { ended }) }
    if (this.tape !== undefined) return this.tape.checkpoint(scope, record, state)
    this.append(record, state)
    if (!isRoot) return state
    this.#hasActed = true
    this.#sink?.checkpoint?.(state, record)
    if (ended === undefined) this.#sink?.flushSoon()
    else await this.flush()
    return state
  }

  pause(record: PauseRecord, state: AgentState): void {
    if (this.tape !== undefined) return
    this.append(record)
    this.#sink?.checkpoint?.(state, record)
  }

  append(record: RunRecord, state?: AgentState): Entry | undefined {
    this.#sink?.append(record)
    return this.log.apply(record, true, state)
  }

  async flush(): Promise<void> {
    const stored = this.#sink?.flush()
    if (stored !== undefined) await stored
  }
}

/** What hooks changed in a state, as a record. Undefined if nothing. */
export function recordedChange(before: AgentState, after: AgentState): ReturnType<typeof stateChange> | undefined {
  const change = stateChange(before, after, sameJson)
  return Object.keys(change).length === 0 ? undefined : change
}

function pathOf({ path }: Scope): { readonly path?: Scope['path'] } {
  return path.length === 0 ? {} : { path }
}

/** The result of an effect that has ended. Throws the error that it ended with. */
function resultAt<T extends Json>(place: Pick<Place, 'stamp'>, { value, error, at }: Done): T {
  place.stamp(at)
  if (error === undefined) return value as T
  throw errorOf(error)
}

export function errorOf({ code, message, value }: ErrorText): AgentError {
  return new AgentError(code, message, { value })
}

function isBegun({ key, isInstant }: Effect): boolean {
  return storedFirst.has(key.kind) && isInstant !== true
}

/** An error as it is recorded. */
export function errorText(thrown: unknown, byDefault: ErrorCode): ErrorText {
  const { code, message, value } = toAgentError(thrown, byDefault)
  try {
    return value === undefined ? { code, message } : { code, message, value: toJson(value) }
  } catch {
    return { code, message } // an error must not be lost because of the value it carries
  }
}

const notStored: ReadonlySet<string> = new Set(['STORE_FAILED', 'SESSION_FENCED'])

/** Whether an error ends the work of this process, and not the run: nothing records it. */
function endsProcess(error: unknown): boolean {
  if (!(error instanceof AgentError)) return false
  return notStored.has(error.code) || error.code.startsWith('REPLAY_')
}

export function passes(thrown: unknown): boolean {
  return thrown instanceof Suspended || endsProcess(thrown)
}
