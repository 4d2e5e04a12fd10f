import type { Emit, EventListener } from '../state/event.ts'

/** Adds to each event of a run where it belongs. It is the one place where this happens. */
export class EventStamp {
  /** The id of the run. Set before the first event. */
  run = ''
  readonly #listener: EventListener
  readonly #session: string | undefined
  #seq = 0

  constructor(listener: EventListener, session?: string) {
    this.#listener = listener
    this.#session = session
  }

  readonly emit: Emit = (emitted) => {
    const [seq, { run }, session] = [++this.#seq, this, this.#session]
    this.#listener(session === undefined ? { seq, run, ...emitted } : { seq, session, run, ...emitted })
  }
}
