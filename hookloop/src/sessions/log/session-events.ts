import type { AgentEvent, Emit, EmittedEvent, EventListener, OwnEvent } from '../../state/event.ts'
import { placedEvent } from '../../agent/event-stamp.ts'
import type { StoredEvent } from '../stores/store.ts'
import { LoggedEvents } from './logged-events.ts'
import type { SessionJournal } from './session-journal.ts'

export type SessionEventsOptions = {
  readonly session: string
  readonly run: string
  readonly listener?: EventListener | undefined
  /** What earlier processes have logged since the last checkpoint of the run. */
  readonly logged?: LoggedEvents | undefined
  /** Whether what happens now happens for the first time. */
  readonly isLive?: () => boolean
}

/**
 * The events of one run in a session: they get the next numbers of its log, are stored with the lines that were appended before
 * them, and are passed to the listener. An event of an earlier process is not stored again: if this process has brought it about
 * as well, the listener gets it with the number that it has in the log.
 */
export class SessionEvents {
  readonly #journal: SessionJournal
  readonly #options: SessionEventsOptions
  /** The middle of the text of each event. */
  readonly #place: string
  #logged: LoggedEvents | undefined
  /** What was logged since the last checkpoint: by earlier processes, and by this one. */
  #earlier: readonly AgentEvent[]
  #own: (readonly [event: EmittedEvent, seq: number])[] = []
  /** The number of the last event of the run, once it is stored. */
  #end: number | undefined

  constructor(journal: SessionJournal, options: SessionEventsOptions) {
    this.#journal = journal
    this.#options = options
    this.#place = `,${JSON.stringify({ session: options.session, run: options.run }).slice(1, -1)},`
    this.#logged = options.logged
    this.#earlier = options.logged?.events ?? []
  }

  readonly emit: Emit = (event) => {
    if (this.#end !== undefined) {
      if (isEnd(event)) this.#pass(event, this.#end)
      return // what comes after the end is not part of the run
    }
    const seq = this.#logged?.find(event)
    if (seq === 'superseded' || (seq !== undefined && this.#options.isLive?.() === false)) return
    this.#pass(event, seq ?? this.#log(event))
    if (event.type !== 'resumed') return
    for (const retraction of this.#logged?.retractions(event.at) ?? []) this.#pass(retraction, this.#log(retraction))
  }

  /** At a checkpoint: what was logged before it does not happen again. */
  checkpoint(): void {
    this.#logged = undefined
    this.#earlier = []
    this.#own = []
  }

  /** This process runs the open step again. */
  startAgain(): void {
    const { session, run } = this.#options
    const own = this.#own.map(([event, seq]) => placedEvent(event, { seq, session, run }))
    this.#logged = new LoggedEvents([...this.#earlier, ...own])
  }

  /** Logs the last event of the run. The listener gets it when it is emitted: after it is stored. */
  end(event: OwnEvent): void {
    this.#end ??= this.#log(event)
  }

  #pass(event: EmittedEvent, seq: number): void {
    const { session, run, listener } = this.#options
    listener?.(placedEvent(event, { seq, session, run }))
  }

  /** Returns the number of the event. */
  #log(event: EmittedEvent): number {
    const seq = this.#journal.nextEventSeq()
    // The text of the placed event. Making that first would cost as much again.
    const text = `{"seq":${seq}${this.#place}${JSON.stringify(event).slice(1)}`
    this.#journal.addEvent(toStored(event, text))
    this.#own.push([event, seq])
    return seq
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
