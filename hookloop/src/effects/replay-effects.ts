import { AgentError } from '../errors.ts'
import { canonicalText, isJsonObject, sameJson, toJson, type Json } from '../state/json.ts'
import {
  EffectScope,
  timedOut,
  type Checkpoint,
  type Effect,
  type EffectKind,
  type Effects,
  type EffectsFactory,
  type TimeLimit,
  type Waited,
} from './effects.ts'
import {
  checkRecording,
  Counter,
  formatRecording,
  parseRecording,
  RecordIndex,
  resultOf,
  type EndEntry,
  type Recording,
} from './recording.ts'
import { RunTime, type RunEnd } from './run-time.ts'

/**
 * Effects that are not performed: every result comes from the recording, and only for the recorded input. No model is called
 * and no tool runs. A run that asks for anything else fails with REPLAY_DIVERGED and the key.
 *
 * @example
 * const again = await agent.run('Hello.', { effects: replayEffects(recording) })
 */
export function replayEffects(recording: Recording): EffectsFactory {
  checkRecording('replayEffects', recording)
  // Through the parser, so that entries from any source are checked and frozen.
  const [first, ...entries] = parseRecording(formatRecording(recording))
  if (first?.type !== 'run') throw new AgentError('RECORDING_INVALID', 'The recording is empty: it has no run.')
  const { id, at } = first
  const index = new RecordIndex(entries)
  if (index.repeated !== undefined) throw new AgentError('RECORDING_INVALID', `"${index.repeated}" begins twice.`)
  return ({ signal, emit }) => new ReplayEffects(new Replayer(index, signal), emit, { run: id, now: at })
}

const cancelled = { check: 0, by: 'cancel' } as const

/** The position of a replay in a recording. */
export class Replayer {
  #index: RecordIndex
  readonly #keys = new Counter()
  readonly #checks = new Counter()
  readonly #ended = new Map<string, RunEnd>()
  /** The last line that the replay has reached. */
  #last = 0
  /** Ends where it did in the recorded run, or with the signal of the caller. */
  readonly time: RunTime

  constructor(index: RecordIndex, signal: AbortSignal | undefined) {
    this.#index = index
    this.time = new RunTime(undefined, signal)
  }

  /** Continues with the next part of the record, in which everything is counted from one. */
  next(index: RecordIndex): void {
    this.#index = index
    this.#keys.clear()
    this.#checks.clear()
    this.#last = 0
  }

  end(key: string, input: Json, kind?: EffectKind): EndEntry {
    const unique = this.#keys.unique(key)
    const recorded = this.#index.begins.get(unique)
    if (recorded === undefined && this.#last >= this.#index.lastBegin) throw incomplete(unique)
    if (recorded === undefined) throw diverged(unique, `No recorded effect "${unique}": the replay diverged.`)
    if (!sameJson(recorded, input) && !(kind === 'approval' && isSameQuestion(recorded, input))) {
      const inputs = `recorded ${canonicalText(recorded)}, now ${canonicalText(input)}`
      throw diverged(unique, `"${unique}" has a different input than recorded: ${inputs}.`)
    }
    const end = this.#index.ends.get(unique)
    if (end === undefined) throw incomplete(unique)
    this.#last = Math.max(this.#last, end.line)
    return end.outcome
  }

  timeout(key: string, time: RunTime): (Waited & { readonly at: number }) | undefined {
    const unique = this.#keys.unique(key)
    const end = this.#index.aborts.get(unique)
    if (end === 'cancel') this.time.cancel()
    if (end === 'limit') time.expire()
    return this.#index.timeouts.get(unique)
  }

  ended(scope: string, time: RunTime): RunEnd | undefined {
    const { cancelledBefore, endedAt } = this.#index
    const end = cancelledBefore ? cancelled : endedAt.get(scope)
    const check = this.#checks.next(scope)
    if (end !== undefined && check >= end.check) this.#ended.set(scope, end.by)
    const ended = this.#ended.get(scope)
    if (ended === 'cancel') time.stopRequest(this.#index.stopRequest)
    if (ended === 'cancel') this.time.cancel()
    if (ended === 'limit') time.expire()
    return ended
  }
}

export class ReplayEffects extends EffectScope implements Effects {
  readonly #replayer: Replayer
  readonly checkpoint?: (checkpoint: Checkpoint) => void

  /** `onCheckpoint` returns the time at which the run continued. */
  constructor(
    replayer: Replayer,
    emit: Effects['emit'],
    place: {
      readonly run: string
      readonly path?: string
      readonly now: number
      readonly onCheckpoint?: (checkpoint: Checkpoint) => number
      readonly time?: RunTime
    },
  ) {
    super({ time: place.time ?? replayer.time, emit }, place)
    this.#replayer = replayer
    const { onCheckpoint } = place
    if (onCheckpoint !== undefined) this.checkpoint = (checkpoint) => this.stamp(onCheckpoint(checkpoint))
  }

  async perform<T extends Json>(effect: Effect): Promise<T> {
    const end = this.#replayer.end(effect.key, toJson(effect.input()), effect.kind)
    this.stamp(end.at)
    return resultOf<T>(end)
  }

  async withTimeout<T>(work: PromiseLike<T>, limit: TimeLimit): Promise<T> {
    const key = limit.key()
    const fired = this.#replayer.timeout(key, this.time)
    if (fired === undefined) return work
    work.then(undefined, () => undefined)
    this.stamp(fired.at)
    const error = timedOut(key, fired)
    limit.abort?.(error)
    throw error
  }

  async sleep(key: string, ms: number): Promise<void> {
    this.stamp(this.#replayer.end(key, ms).at)
  }

  scope(name: string): Effects {
    return new ReplayEffects(this.#replayer, this.emit, { ...this.within(name), time: this.time })
  }

  child(name: string, emit: Effects['emit']): Effects {
    return new ReplayEffects(this.#replayer, emit, { ...this.within(name), time: new RunTime(undefined, this.time) })
  }

  ended(): RunEnd | undefined {
    return this.#replayer.ended(this.path, this.time)
  }
}

/** The key of a question says which call it is about. Ids of version 0.1 did not cover the tool. */
function isSameQuestion(recorded: Json, now: Json): boolean {
  return isJsonObject(recorded) && isJsonObject(now) && recorded['message'] === now['message']
}

function diverged(key: string, message: string): AgentError {
  return new AgentError('REPLAY_DIVERGED', message, { value: key })
}

function incomplete(key: string): AgentError {
  return new AgentError('REPLAY_INCOMPLETE', `The recording ends before "${key}" did.`, { value: key })
}
