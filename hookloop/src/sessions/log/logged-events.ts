import type { EmittedEvent, OwnEvent } from '../../state/event.ts'
import { canonicalText, type Json } from '../../values/json.ts'

/**
 * What is recorded of the events of an open run since its last checkpoint. A process that resumes the run repeats these events:
 * they are recognized by their content, because concurrent calls and observers may emit them in another order.
 */
export class LoggedEvents {
  /** How often each event was recorded that was not repeated yet. */
  readonly #counts = new Map<string, number>()
  /** The answers that are complete. */
  readonly #complete = new Set<string>()
  /** The answers that were being written. */
  readonly #unfinished = new Map<string, EmittedEvent>()

  /** `pieces`: what the turn has of answers, in order. */
  constructor(events: readonly EmittedEvent[], pieces: readonly EmittedEvent[] = []) {
    for (const event of pieces) {
      const { type } = ownEvent(event)
      if (isPiece(type)) this.#unfinished.set(answerOf(event), event)
      else if (type === 'retracted') this.#unfinished.delete(answerOf(event))
      else this.#add(event)
    }
    for (const event of events) {
      if (ownEvent(event).type === 'responded') this.#complete.add(answerOf(event))
      this.#add(event)
    }
  }

  /** Whether an event was recorded, or is a piece of an answer that was. Each one is found once, but pieces. */
  find(event: EmittedEvent): boolean {
    if (this.#counts.size === 0) return false
    const { type } = ownEvent(event)
    if (isPiece(type)) return this.#complete.has(answerOf(event))
    if (type === 'toolProgress') return false // what runs again reports its progress again
    const key = contentOf(event)
    const count = this.#counts.get(key) ?? 0
    if (count > 0) this.#counts.set(key, count - 1)
    return count > 0
  }

  /** Events that retract the answers that were being written. */
  retractions(at: number): readonly EmittedEvent[] {
    const why = 'the process ended while the answer was written'
    const unfinished = [...this.#unfinished].filter(([answer]) => !this.#complete.has(answer))
    return unfinished.map(([, last]): EmittedEvent => {
      const retracted: OwnEvent = { type: 'retracted', step: ownEvent(last).step, at, why }
      if (last.type !== 'subagent') return retracted
      return { type: 'subagent', path: last.path, event: retracted, step: last.step, at }
    })
  }

  #add(event: EmittedEvent): void {
    const key = contentOf(event)
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }
}

function ownEvent(event: EmittedEvent): OwnEvent {
  return event.type === 'subagent' ? event.event : event
}

function isPiece(type: OwnEvent['type']): boolean {
  return type === 'text' || type === 'reasoning' || type === 'toolCallDelta'
}

/** The agent and the step whose answer an event is about. */
function answerOf(event: EmittedEvent): string {
  return event.type === 'subagent' ? JSON.stringify([event.path, event.event.step]) : String(event.step)
}

/** An event without what differs when it is repeated: times and durations. */
function contentOf(event: EmittedEvent): string {
  const content = event.type === 'subagent' ? { ...event, at: 0, event: timeless(event.event) } : timeless(event)
  return canonicalText(JSON.parse(JSON.stringify(content)) as Json)
}

function timeless(event: OwnEvent): OwnEvent {
  switch (event.type) {
    case 'hook':
      return { ...event, at: 0, entry: { ...event.entry, durationMs: 0 } }
    case 'toolFinished': {
      const { durationMs: _took, call, ...rest } = event
      return { ...rest, at: 0, call: { ...call, args: {} } } // hooks that have changed may prepare the same call in another way
    }
    default:
      return { ...event, at: 0 }
  }
}
