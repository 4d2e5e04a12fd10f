import type { Emit, EmittedEvent, EventListener } from '../../state/event.ts'
import type { RunLog } from '../../effects/log.ts'
import type { RunRecord } from '../../effects/records.ts'
import { placedEvent } from '../../agent/event-stamp.ts'
import { LoggedEvents } from './logged-events.ts'
import { eventsOf, hasRecord, eventRecord } from './record-events.ts'
import type { SessionJournal } from './session-journal.ts'
import { eventSeq, pieceSeq } from './watch-session.ts'

export type SessionEventsOptions = {
  readonly session: string
  readonly run: string
  readonly log: RunLog
  readonly listener?: EventListener | undefined
  /** What earlier processes have recorded since the last checkpoint of the run. */
  readonly logged?: LoggedEvents | undefined
}

/**
 * The events of one run in a session. An event that a record of the run stands for is passed to the listener with that record.
 * What only the event says is a record of its own, and pieces of answers are kept as long as their turn. An event that an earlier
 * process has recorded is not repeated.
 */
export class SessionEvents {
  readonly #journal: SessionJournal
  readonly #options: SessionEventsOptions
  #logged: LoggedEvents | undefined
  #place = { line: -1, count: 0 }
  /** The pieces since the last checkpoint that must not be repeated. */
  #own: EmittedEvent[] = []
  /** The number of the last event of the run, once it is recorded. */
  #end: number | undefined

  constructor(journal: SessionJournal, options: SessionEventsOptions) {
    this.#journal = journal
    this.#options = options
    this.#logged = options.logged
  }

  /** Appends a record of the run. The listener gets the last event of the run when it is emitted: after it is stored. */
  append(record: RunRecord): void {
    const { log, listener } = this.#options
    const events = listener === undefined ? [] : eventsOf(record, log)
    this.#journal.append(record)
    const { seq: line } = this.#journal
    for (const [i, event] of events.entries()) if (!isEnd(event)) this.#pass(event, eventSeq(line, i))
    if (record.t === 'final' || record.t === 'pause') this.#end = eventSeq(line, Math.max(0, events.length - 1))
    if (record.t === 'resume')
      for (const retraction of this.#logged?.retractions(record.at) ?? []) this.#piece(retraction)
  }

  readonly emit: Emit = (event) => {
    if (isEnd(event)) this.#pass(event, this.#end ?? this.#nextPiece())
    if (hasRecord(event) || this.#end !== undefined) return // what comes after the end is not part of the run
    if (this.#logged?.find(event) === true) return
    if (isPiece(event)) this.#piece(event)
    else this.#record(event)
  }

  /** At a checkpoint: what was recorded before it does not happen again. */
  checkpoint(): void {
    this.#logged = undefined
    this.#own = []
  }

  /** This process runs the open step again. */
  startAgain(): void {
    this.#logged = new LoggedEvents(this.#journal.reader.events, this.#own)
  }

  #record(event: EmittedEvent): void {
    const { log, run } = this.#options
    const record = eventRecord(event, log)
    this.#journal.append(log.input?.run === run ? record : { ...record, run })
    this.#journal.flushLater()
    this.#pass(event, eventSeq(this.#journal.seq, 0))
  }

  #piece(event: EmittedEvent): void {
    const seq = this.#nextPiece()
    if (isRepeated(event)) this.#own.push(event)
    this.#journal.addPiece({ seq, text: JSON.stringify(event) })
    this.#pass(event, seq)
  }

  #nextPiece(): number {
    const line = this.#journal.seq
    if (this.#place.line !== line) this.#place = { line, count: 0 }
    return pieceSeq(line, this.#place.count++)
  }

  #pass(event: EmittedEvent, seq: number): void {
    const { session, run, listener } = this.#options
    listener?.(placedEvent(event, { seq, session, run }))
  }
}

function isEnd({ type }: EmittedEvent): boolean {
  return type === 'finished' || type === 'suspended'
}

/** Whether an event is only of use while its turn lasts. */
function isPiece(event: EmittedEvent): boolean {
  return ofTurn.has(event.type === 'subagent' ? event.event.type : event.type)
}

const ofTurn: ReadonlySet<string> = new Set([
  'stepStarted',
  'inferenceStarted',
  'text',
  'reasoning',
  'toolCallDelta',
  'retracted',
  'toolProgress',
])

/** Whether a process that runs the step again emits the same event. */
function isRepeated(event: EmittedEvent): boolean {
  const { type } = event.type === 'subagent' ? event.event : event
  return type === 'stepStarted' || type === 'inferenceStarted'
}
