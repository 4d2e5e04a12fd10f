import type { AgentEvent, Emit, EmittedEvent, EventListener, EventPlace } from '../state/event.ts'

/** Gives the events of a run without a session their place. */
export class EventStamp {
  /** The id of the run. Set before the first event. */
  run = ''
  readonly #listener: EventListener
  #seq = 0

  constructor(listener: EventListener) {
    this.#listener = listener
  }

  readonly emit: Emit = (event) => this.#listener(placedEvent(event, { seq: ++this.#seq, run: this.run }))
}

export function placedEvent(event: EmittedEvent, place: EventPlace): AgentEvent {
  return { ...place, ...event }
}
