import { AgentError } from '../errors.ts'
import { canonicalText, sameJson, toJson, type Json } from '../state/json.ts'
import { EffectScope, timedOut, type Checkpoint, type Effect, type Effects, type EffectsFactory } from './effects.ts'
import {
  Counter,
  formatRecording,
  parseRecording,
  RecordIndex,
  resultOf,
  type EndEntry,
  type Recording,
} from './recording.ts'

/**
 * Effects that are not performed: every result comes from the recording, and only for the recorded input. No model is called
 * and no tool runs. A run that asks for anything else fails with REPLAY_DIVERGED and the key.
 *
 * @example
 * const again = await agent.run('Hello.', { effects: replayEffects(recording) })
 */
export function replayEffects(recording: Recording): EffectsFactory {
  // Through the parser, so that entries from any source are checked and frozen.
  const [first, ...entries] = parseRecording(formatRecording(recording))
  if (first?.type !== 'run') throw new AgentError('RECORDING_INVALID', 'The recording is empty: it has no run.')
  const { id, at } = first
  const index = new RecordIndex(entries)
  if (index.repeated !== undefined) throw new AgentError('RECORDING_INVALID', `"${index.repeated}" begins twice.`)
  return ({ signal, emit }) => new ReplayEffects(new Replayer(index, signal), emit, { run: id, now: at })
}

/** The position of a replay in a recording. */
export class Replayer {
  #index: RecordIndex
  readonly #keys = new Counter()
  readonly #checks = new Counter()
  readonly #cancelled = new Set<string>()
  /** The last line that the replay has reached. */
  #last = 0
  readonly #controller = new AbortController()
  /** Aborts where it did in the recorded run, or with the signal of the caller. */
  readonly signal: AbortSignal

  constructor(index: RecordIndex, signal: AbortSignal) {
    this.#index = index
    this.signal = AbortSignal.any([signal, this.#controller.signal]) // leaves no listener on a signal that lives longer
  }

  /** Continues with the next part of the record, in which everything is counted from one. */
  next(index: RecordIndex): void {
    this.#index = index
    this.#keys.clear()
    this.#checks.clear()
    this.#last = 0
  }

  end(key: string, input: Json): EndEntry {
    const unique = this.#keys.unique(key)
    const recorded = this.#index.begins.get(unique)
    if (recorded === undefined && this.#last >= this.#index.lastBegin) throw incomplete(unique)
    if (recorded === undefined) throw diverged(unique, `No recorded effect "${unique}": the replay diverged.`)
    if (!sameJson(recorded, input)) {
      const inputs = `recorded ${canonicalText(recorded)}, now ${canonicalText(input)}`
      throw diverged(unique, `"${unique}" has a different input than recorded: ${inputs}.`)
    }
    const end = this.#index.ends.get(unique)
    if (end === undefined) throw incomplete(unique)
    this.#last = Math.max(this.#last, end.line)
    return end.outcome
  }

  timeout(key: string): { readonly at: number; readonly ms: number } | undefined {
    const unique = this.#keys.unique(key)
    if (this.#index.aborts.has(unique)) this.#controller.abort()
    return this.#index.timeouts.get(unique)
  }

  cancelled(scope: string): boolean {
    const at = this.#index.cancelledBefore ? 0 : (this.#index.cancelledAt.get(scope) ?? Infinity)
    if (this.#checks.next(scope) >= at) this.#cancelled.add(scope)
    if (!this.#cancelled.has(scope)) return false
    this.#controller.abort()
    return true
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
    },
  ) {
    super({ signal: replayer.signal, emit }, place)
    this.#replayer = replayer
    const { onCheckpoint } = place
    if (onCheckpoint !== undefined) this.checkpoint = (checkpoint) => this.stamp(onCheckpoint(checkpoint))
  }

  async perform<T extends Json>(effect: Effect): Promise<T> {
    const end = this.#replayer.end(effect.key, toJson(effect.input()))
    this.stamp(end.at)
    return resultOf<T>(end)
  }

  async withTimeout<T>(key: string, _ms: number, work: PromiseLike<T>): Promise<T> {
    const fired = this.#replayer.timeout(key)
    if (fired === undefined) return work
    work.then(undefined, () => undefined)
    this.stamp(fired.at)
    throw timedOut(key, fired.ms)
  }

  async sleep(key: string, ms: number): Promise<void> {
    this.stamp(this.#replayer.end(key, ms).at)
  }

  scope(name: string): Effects {
    return new ReplayEffects(this.#replayer, this.emit, this.within(name))
  }

  cancelled(): boolean {
    return this.#replayer.cancelled(this.path)
  }
}

function diverged(key: string, message: string): AgentError {
  return new AgentError('REPLAY_DIVERGED', message, { value: key })
}

function incomplete(key: string): AgentError {
  return new AgentError('REPLAY_INCOMPLETE', `The recording ends before "${key}" did.`, { value: key })
}
