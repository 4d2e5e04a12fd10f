import type { OwnEvent } from '../../state/event.ts'
import type { Json } from '../../state/json.ts'
import type { Checkpoint, Effects } from '../../effects/effects.ts'
import { RecordedEffects, Recorder } from '../../effects/record-effects.ts'
import { repeatedKey, type RecordEntry } from '../../effects/recording.ts'
import type { SessionEvents } from './session-events.ts'
import type { SessionJournal } from './session-journal.ts'

export type SessionEffectsOptions = {
  readonly journal: SessionJournal
  readonly events: SessionEvents
  /** What happened since the last checkpoint. */
  readonly entries: readonly RecordEntry[]
  readonly run: string
  readonly now: number
  /** Whether the run closes a step that another agent has left open, so that it may differ from the entries. */
  readonly isClosing: boolean
  /** Whether model calls are stored with their requests. */
  readonly recordsRequests: boolean
  /** Called with each checkpoint before it is stored. */
  readonly onCheckpoint: (checkpoint: Checkpoint) => void
}

/** The effects of a run in a session: they are recorded in the session, and so is the state at each checkpoint. */
export class SessionEffects extends RecordedEffects {
  readonly #options: SessionEffectsOptions
  /** Appends the last checkpoint of the run. It is stored in one write with the event that says so. */
  #appendLast: (() => void) | undefined

  constructor(inner: Effects, options: SessionEffectsOptions) {
    super(inner, new Recorder(options.events, options), options)
    this.#options = options
    options.journal.time = inner.time
    options.events.hasDiverged = () => this.hasDiverged
    options.events.mayDiverge = () => this.recorder.unused?.any !== undefined
  }

  /** Whether the run differs from what was recorded. Nothing more of it is stored. */
  get hasDiverged(): boolean {
    return this.recorder.diverged !== undefined
  }

  /** As an effect that is never asked for: the same agent repeats what the subagent did. */
  storeResult(name: string, input: Json, value: Json): void {
    const { known, diverged, journal } = this.recorder
    const key = repeatedKey(name, 1)
    if (diverged !== undefined || known.ends.has(key)) return
    const at = this.now()
    if (!known.begins.has(key)) journal.append({ type: 'begin', key, kind: 'tool', input, at })
    journal.append({ type: 'end', key, at, value })
    journal.flushSoon()
  }

  checkpoint(checkpoint: Checkpoint): void {
    const { recorder } = this
    const unused = recorder.unused?.any
    if (unused !== undefined) recorder.diverge(unused)
    if (recorder.diverged !== undefined) throw recorder.diverged
    const { journal, events, onCheckpoint } = this.#options
    const { phase, state, final, ledgerFrom } = checkpoint
    const ledger = ledgerFrom(journal.ledgerLength)
    const record = { phase, at: this.now(), ledger, ...(final !== undefined && { final }) }
    const append = (): void => {
      onCheckpoint(checkpoint)
      journal.appendState(state, record)
    }
    events.checkpoint()
    if (phase === 'started' || phase === 'step') append()
    else this.#appendLast = append
    this.recorder.checkpoint()
  }

  settle(end: OwnEvent): void | Promise<void> {
    if (this.hasDiverged) return undefined
    this.#appendLast?.()
    this.#options.events.end(end)
    return this.#options.journal.flush()
  }
}
