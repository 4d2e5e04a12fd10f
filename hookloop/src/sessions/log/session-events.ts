import type { Emit, EmittedEvent, EventListener } from '../../core/state/event.ts'
import type { RunLog } from '../../core/effects/log.ts'
import type { RunRecord } from '../../core/effects/records.ts'
import { placedEvent } from '../../core/agent/event-stamp.ts'
import { LoggedEvents } from './logged-events.ts'
import { eventsOf, hasRecord, eventRecord } from './record-events.ts'
import type { SessionJournal } from './session-journal.ts'
import type { EventRecord } from './session-records.ts'
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
  #own: EventRecord[] = []
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
      for (const each of this.#logged?.retractions(record.at) ?? []) this.#piece(each, eventRecord(each))
  }

  readonly emit: Emit = (event) => {
    if (isEnd(event)) this.#pass(event, this.#end ?? this.#nextPiece())
    if (hasRecord(event) || this.#end !== undefined) return // what comes after the end is not part of the run
    const record = eventRecord(event)
    if (this.#logged?.find(record) === true) return
    if (ofTurn.has(record.event['type'])) this.#piece(event, record)
    else this.#record(event, record)
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

  #record(event: EmittedEvent, record: EventRecord): void {
    const { log, run } = this.#options
    this.#journal.append(log.input?.run === run ? record : { ...record, run })
    this.#journal.flushLater()
    this.#pass(event, eventSeq(this.#journal.seq, 0))
  }

  #piece(event: EmittedEvent, record: EventRecord): void {
    const seq = this.#nextPiece()
    if (isRepeated(record)) this.#own.push(record)
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

/** Events that are only of use while their turn lasts. */
const ofTurn: ReadonlySet<unknown> = new Set([
  'started',
  'stepStarted',
  'inferenceStarted',
  'text',
  'reasoning',
  'toolCallDelta',
  'retracted',
  'toolProgress',
])

/** Whether a process that runs the step again emits the same event. */
function isRepeated({ event: { type } }: EventRecord): boolean {
  return type === 'started' || type === 'stepStarted' || type === 'inferenceStarted'
}
