import type { Emit, EventListener } from '../state/event.ts'

/** Gives the events of a run without a session their place. */
export class EventStamp {
  /** The id of the run. Set before the first event. */
  run = ''
  readonly #listener: EventListener
  #seq = 0

  constructor(listener: EventListener) {
    this.#listener = listener
  }

  readonly emit: Emit = (event) => this.#listener({ seq: ++this.#seq, run: this.run, ...event })
}
