import type { AgentState } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import { diffState } from '../../state/state-diff.ts'
import type { Checkpoint, Effects } from '../../effects/effects.ts'
import { RecordedEffects, Recorder, type Journal } from '../../effects/record-effects.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { LineEncoder } from './session-log.ts'
import type { SessionRecord } from './session-records.ts'
import { storeFailed, type SessionWriter } from '../stores/store.ts'

/** Appends records to a session that is locked, in as few writes as possible. */
export class SessionJournal implements Journal {
  readonly #writer: SessionWriter
  readonly #encoder: LineEncoder
  #lines: string[] = []
  #head: JsonObject | undefined
  #writing: Promise<void> | undefined
  #failure: Error | undefined
  #isScheduled = false

  constructor(writer: SessionWriter, end: { readonly seq: number; readonly sum: string }) {
    this.#writer = writer
    this.#encoder = new LineEncoder(end)
  }

  append(record: SessionRecord): void {
    this.#lines.push(this.#encoder.encode(record))
  }

  /** Sets what lists show of the session. It is stored with the next lines. */
  setHead(head: JsonObject): void {
    this.#head = head
  }

  /** One write at a time, in order. After a failure nothing is written, because a line would be missing. */
  flush(): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#writing !== undefined) return this.#writing.then(() => this.flush())
    if (this.#lines.length === 0 && this.#head === undefined) return undefined
    const [lines, head] = [this.#lines, this.#head]
    this.#lines = []
    this.#head = undefined
    try {
      const writing = this.#writer.append(lines, head)
      if (!(writing instanceof Promise)) return undefined
      this.#writing = writing.then(
        () => void (this.#writing = undefined),
        (thrown: unknown) => this.#fail(thrown),
      )
      return this.#writing
    } catch (thrown) {
      return this.#fail(thrown)
    }
  }

  flushSoon(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      try {
        this.flush()?.catch(() => undefined)
      } catch {
        // the next flush reports it
      }
    })
  }

  #fail(thrown: unknown): never {
    this.#writing = undefined
    this.#failure = storeFailed('The session cannot be stored', thrown)
    throw this.#failure
  }
}

export type SessionEffectsOptions = {
  readonly journal: SessionJournal
  /** What happened since the last checkpoint. */
  readonly entries: readonly RecordEntry[]
  /** The state at the last checkpoint, and how many entries of the ledger were stored with it. */
  readonly state: AgentState | undefined
  readonly ledger: number
  readonly run: string
  readonly now: number
  /** Called with each checkpoint before it is stored. */
  readonly onCheckpoint: (checkpoint: Checkpoint) => void
}

/** The effects of a run in a session: they are recorded in the session, and so is the state at each checkpoint. */
export class SessionEffects extends RecordedEffects {
  readonly #options: SessionEffectsOptions
  #state: AgentState | undefined
  #ledger: number

  constructor(inner: Effects, options: SessionEffectsOptions) {
    super(inner, new Recorder(options.journal, { entries: options.entries }), options)
    this.#options = options
    this.#state = options.state
    this.#ledger = options.ledger
  }

  checkpoint(checkpoint: Checkpoint): void {
    if (this.recorder.diverged !== undefined) return
    const { journal, onCheckpoint } = this.#options
    onCheckpoint(checkpoint)
    const { phase, state, ledgerFrom } = checkpoint
    const ledger = ledgerFrom(this.#ledger)
    const diff = diffState(this.#state, state)
    journal.append({ type: 'state', phase, at: this.now(), diff, ...(ledger.length > 0 && { ledger }) })
    this.#state = state
    this.#ledger += ledger.length
    this.recorder.checkpoint()
  }

  settle(): void | Promise<void> {
    return this.recorder.diverged === undefined ? this.#options.journal.flush() : undefined
  }
}
