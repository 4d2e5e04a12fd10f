import type { Emit, EmittedEvent, EventListener, OwnEvent } from '../../core/state/event.ts'
import type { RunLog } from '../../core/effects/log.ts'
import type { RunRecord } from '../../core/effects/records.ts'
import type { AgentPath } from '../../core/state/subagent.ts'
import { eventsOf, hasRecord, inSubagent } from './record-events.ts'
import type { SessionJournal } from './session-journal.ts'
import type { HooksRecord } from './session-records.ts'
import { eventSeq, pieceSeq } from './watch-session.ts'

export type SessionEventsOptions = {
  readonly session: string
  readonly run: string
  readonly log: RunLog
  readonly listener?: EventListener | undefined
  /** What earlier processes have reported since the last checkpoint of the run: its pieces, in order. */
  readonly reported?: EmittedEvent[] | undefined
}

/**
 * The events of one run in a session. An event that a record of the run stands for is passed to the listener with that record.
 * Every other one is a piece, which is kept as long as its turn. A piece that an earlier process has reported is not repeated.
 */
export class SessionEvents {
  readonly #journal: SessionJournal
  readonly #options: SessionEventsOptions
  #reported: ReportedEvents | undefined
  #place = { line: -1, count: 0 }
  /** The pieces since the last checkpoint. */
  #pieces: EmittedEvent[]
  /** The number of the last event of the run, once it is recorded. */
  #end: number | undefined

  constructor(journal: SessionJournal, options: SessionEventsOptions) {
    this.#journal = journal
    this.#options = options
    this.#pieces = options.reported ?? []
    if (this.#pieces.length > 0) this.startAgain()
  }

  /** Appends a record. The listener gets the last event of the run when it is emitted: after it is stored. */
  append(record: RunRecord | HooksRecord): void {
    const { log, listener } = this.#options
    const events = listener === undefined ? [] : eventsOf(record, log)
    this.#journal.append(record)
    const { seq: line } = this.#journal
    for (const [i, event] of events.entries()) if (!isEnd(event)) this.#pass(event, eventSeq(line, i))
    if (record.t === 'final' || record.t === 'pause') this.#end = eventSeq(line, Math.max(0, events.length - 1))
    if (record.t === 'resume') for (const each of this.#reported?.retractions(record.at) ?? []) this.#piece(each)
  }

  readonly emit: Emit = (event) => {
    if (isEnd(event)) this.#pass(event, this.#end ?? this.#nextPiece())
    if (hasRecord(event) || this.#end !== undefined) return // what comes after the end is not part of the run
    if (this.#reported?.repeats(event) !== true) this.#piece(event)
  }

  /** At a checkpoint: what was reported before it does not happen again. */
  checkpoint(): void {
    this.#reported = undefined
    this.#pieces = []
  }

  /** This process runs the open step again. */
  startAgain(): void {
    this.#reported = new ReportedEvents(this.#pieces)
  }

  #piece(event: EmittedEvent): void {
    const seq = this.#nextPiece()
    this.#pieces.push(event)
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
    listener?.({ seq, session, run, ...event })
  }
}

/** What was reported of the open step. A process that runs it again reports these events again, maybe in another order. */
class ReportedEvents {
  /** How often each event was reported that was not repeated yet. */
  readonly #counts = new Map<string, number>()
  /** The last piece of each answer that was being written. */
  readonly #unfinished = new Map<string, EmittedEvent>()

  constructor(events: readonly EmittedEvent[]) {
    for (const event of events) {
      const { type, key, answer } = about(event)
      if (isOfAnswer(type)) this.#unfinished.set(answer, event)
      if (type === 'retracted' || type === 'responded') this.#unfinished.delete(answer)
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    }
  }

  /** Whether an event was reported, or is a piece of an answer that was. Each one is found once, but pieces of answers. */
  repeats(event: EmittedEvent): boolean {
    const { type, key, answer } = about(event)
    if (isOfAnswer(type)) return this.#counts.has(answer)
    if (type === 'toolProgress' || type === 'retracted') return false // what runs again reports its progress again
    const count = this.#counts.get(key) ?? 0
    if (count > 0) this.#counts.set(key, count - 1)
    return count > 0
  }

  /** Events that retract the answers that were being written. */
  retractions(at: number): readonly EmittedEvent[] {
    const why = 'the process ended while the answer was written'
    return [...this.#unfinished.values()].flatMap((event) => {
      const { path, own } = partsOf(event)
      return inSubagent({ path, at }, [{ type: 'retracted', step: own.step, at, why }])
    })
  }
}

function isEnd({ type }: EmittedEvent): boolean {
  return type === 'finished' || type === 'suspended'
}

function isOfAnswer(type: string): boolean {
  return type === 'text' || type === 'reasoning' || type === 'toolCallDelta'
}

function partsOf(event: EmittedEvent): { readonly path: AgentPath; readonly own: OwnEvent } {
  return event.type === 'subagent' ? { path: event.path, own: event.event } : { path: [], own: event }
}

/** What tells the events of a step apart, whatever came of them. */
const naming = ['type', 'agent', 'step', 'call', 'id', 'attempt', 'hook', 'code', 'entry', 'trigger']

/** `key` is the same whenever the step runs again. `answer` is the key of the answer that the event may be a piece of. */
function about(event: EmittedEvent): { readonly type: string; readonly key: string; readonly answer: string } {
  const { path, own } = partsOf(event)
  const { type, step } = own
  const keyOf = (named: object): string => JSON.stringify([path, named], naming)
  return { type, key: keyOf(own), answer: keyOf({ type: 'responded', step }) }
}
