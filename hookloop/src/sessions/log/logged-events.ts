import type { EmittedEvent } from '../../core/state/event.ts'
import { inSubagent } from './record-events.ts'
import type { EventRecord } from './session-records.ts'

/**
 * What is recorded of the events of an open run since its last checkpoint. A process that resumes the run repeats these events:
 * they are recognized by what is stored of them, because concurrent calls and observers may emit them in another order.
 */
export class LoggedEvents {
  /** How often each event was recorded that was not repeated yet. */
  readonly #counts = new Map<string, number>()
  /** The answers that are complete. */
  readonly #complete = new Set<string>()
  /** The answers that were being written. */
  readonly #unfinished = new Map<string, EventRecord>()

  /** `pieces`: what the turn has of answers, in order. */
  constructor(events: readonly EventRecord[], pieces: readonly EventRecord[] = []) {
    for (const piece of pieces) {
      if (isOfAnswer(piece)) this.#unfinished.set(answerOf(piece), piece)
      else if (piece.event['type'] === 'retracted') this.#unfinished.delete(answerOf(piece))
      else this.#add(piece)
    }
    for (const event of events) {
      if (event.event['type'] === 'responded') this.#complete.add(answerOf(event))
      this.#add(event)
    }
  }

  /** Whether an event was recorded, or is a piece of an answer that was. Each one is found once, but pieces. */
  find(event: EventRecord): boolean {
    if (this.#counts.size === 0) return false
    if (isOfAnswer(event)) return this.#complete.has(answerOf(event))
    if (event.event['type'] === 'toolProgress') return false // what runs again reports its progress again
    const key = contentOf(event)
    const count = this.#counts.get(key) ?? 0
    if (count > 0) this.#counts.set(key, count - 1)
    return count > 0
  }

  /** Events that retract the answers that were being written. */
  retractions(at: number): readonly EmittedEvent[] {
    const why = 'the process ended while the answer was written'
    const unfinished = [...this.#unfinished].filter(([answer]) => !this.#complete.has(answer))
    return unfinished.flatMap(([, { path, event }]) =>
      inSubagent({ path, at }, [{ type: 'retracted', step: Number(event['step']), at, why }]),
    )
  }

  #add(event: EventRecord): void {
    const key = contentOf(event)
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }
}

function isOfAnswer({ event: { type } }: EventRecord): boolean {
  return type === 'text' || type === 'reasoning' || type === 'toolCallDelta'
}

/** The agent and the step whose answer an event is about. */
function answerOf({ path = [], event }: EventRecord): string {
  return JSON.stringify([path, event['step']])
}

/** An event without what differs when it is repeated: times, and the arguments that changed hooks prepare for a call that has begun. */
function contentOf({ path = [], event }: EventRecord): string {
  const { at: _at, durationMs: _took, call, entry, ...rest } = event
  const id = (call as { readonly id?: string } | undefined)?.id
  return JSON.stringify([path, rest, id, { ...(entry as object | undefined), durationMs: 0 }])
}
