import type { AgentEvent, Emit, EmittedEvent, EventListener, OwnEvent } from '../../state/event.ts'
import { placedEvent } from '../../agent/event-stamp.ts'
import type { Journal, RunEntry } from '../../effects/record-effects.ts'
import type { StoredEvent } from '../stores/store.ts'
import type { LoggedEvents } from './logged-events.ts'
import type { SessionJournal } from './session-journal.ts'

export type SessionEventsOptions = {
  readonly session: string
  readonly run: string
  readonly listener?: EventListener | undefined
  /** What earlier processes have logged since the last checkpoint of the run. */
  readonly logged?: LoggedEvents | undefined
  /**
   * Whether the run may differ from what was recorded. Its events are held until it does something new: until then, the step
   * may be closed instead.
   */
  readonly isTentative?: boolean
  /** Whether the run ends if it differs: the listener gets the events, although they are not logged. Default: they are dropped. */
  readonly endsIfDiverged?: boolean
}

type HeldEvent = { readonly event: EmittedEvent; readonly seq: number | undefined }

/**
 * The events of one run in a session: they get the next numbers of its log, are stored with the lines that were appended before
 * them, and are passed to the listener. After a crash, an event that the log has already is not stored again: the listener
 * gets it with the number that it has there.
 */
export class SessionEvents implements Journal {
  readonly #journal: SessionJournal
  readonly #options: SessionEventsOptions
  /** The middle of the text of each event. */
  readonly #place: string
  #logged: LoggedEvents | undefined
  #held: HeldEvent[] | undefined
  /** The number of the last event of the run, once it is stored. */
  #end: number | undefined
  /** How many events the listener got that are not in the log. */
  #unlogged = 0
  /** Whether the run differs from what was recorded. */
  hasDiverged: () => boolean = () => false
  /** Whether it may still: it has not asked for everything that was recorded. */
  mayDiverge: () => boolean = () => false

  constructor(journal: SessionJournal, options: SessionEventsOptions) {
    this.#journal = journal
    this.#options = options
    this.#place = `,${JSON.stringify({ session: options.session, run: options.run }).slice(1, -1)},`
    this.#logged = options.logged
    if (options.isTentative === true) this.#held = []
  }

  /** Whether the log has the input of the run. */
  get hasInput(): boolean {
    return this.#logged?.hasInput === true
  }

  readonly emit: Emit = (event) => {
    if (this.hasDiverged()) return this.#passOn(event)
    if (this.#end !== undefined) {
      if (isEnd(event)) this.#options.listener?.(this.#placed(event, this.#end))
      return // what comes after the end is not part of the run
    }
    const seq = this.#logged?.find(event)
    if (seq === 'superseded') return
    this.#add(event, seq)
    if (event.type !== 'resumed') return
    for (const retraction of this.#logged?.retractions(event.at) ?? []) this.#add(retraction, undefined)
  }

  perform(): void {
    if (this.#held !== undefined && !this.mayDiverge()) this.#release()
  }

  append(entry: RunEntry): void {
    this.perform()
    this.#journal.append(entry)
  }

  flush(): void | Promise<void> {
    return this.#journal.flush()
  }

  flushSoon(): void {
    this.#journal.flushSoon()
  }

  #release(): void {
    const held = this.#held
    this.#held = undefined
    for (const { event, seq } of held ?? []) this.#add(event, seq)
  }

  /** At a checkpoint: what was logged before it does not happen again. */
  checkpoint(): void {
    this.#release()
    this.#logged = undefined
  }

  /** Logs the last event of the run. The listener gets it when it is emitted: after it is stored. */
  end(event: OwnEvent): void {
    this.#release()
    this.#end = this.#log(event)
  }

  #add(event: EmittedEvent, known: number | undefined): void {
    if (this.#held !== undefined) return void this.#held.push({ event, seq: known })
    const seq = known ?? this.#log(event)
    this.#options.listener?.(this.#placed(event, seq))
  }

  /** The events of a run that has diverged are not logged. */
  #passOn(event: EmittedEvent): void {
    const held = this.#held ?? []
    this.#held = []
    if (this.#options.endsIfDiverged !== true) return
    for (const each of [...held, { event, seq: undefined }])
      this.#options.listener?.(this.#placed(each.event, each.seq ?? this.#journal.eventSeq + ++this.#unlogged))
  }

  /** Returns the number of the event. */
  #log(event: EmittedEvent): number {
    const seq = this.#journal.nextEventSeq()
    // The text of the placed event. Making that first would cost as much again.
    const text = `{"seq":${seq}${this.#place}${JSON.stringify(event).slice(1)}`
    this.#journal.addEvent(toStored(event, text))
    return seq
  }

  #placed(event: EmittedEvent, seq: number): AgentEvent {
    const { session, run } = this.#options
    return placedEvent(event, { seq, session, run })
  }
}

function isEnd({ type }: EmittedEvent): boolean {
  return type === 'finished' || type === 'suspended'
}

function toStored(event: EmittedEvent, text: string): StoredEvent {
  if (event.type === 'input') return { text, startsTurn: true }
  return isTransient(event.type === 'subagent' ? event.event : event) ? { text, transient: true } : { text }
}

/** Whether an event is only of use while its turn lasts. */
function isTransient({ type }: OwnEvent): boolean {
  return type === 'text' || type === 'reasoning' || type === 'toolCallDelta' || type === 'toolProgress'
}
