import type { JsonObject } from '../../values/json.ts'
import type { StopRequest } from '../../core/state/stop-request.ts'
import { sessionReleased, type AppendOptions, type SessionWriter } from './store.ts'

/** A session that a store has locked: what differs between stores. */
export type LockedLines = {
  readonly id: string
  readonly head: JsonObject
  readonly length: number
  /** The request to stop its run, as far as this store knows. */
  stop: StopRequest | undefined
  /** Called with at least one line, head or piece, and never after `unlock`. */
  append(lines: readonly string[], options: AppendOptions): void | Promise<void>
  unlock(): void | Promise<void>
}

/** The writers that a store has open. */
export class OpenWriters<L extends LockedLines> {
  /** Who hears of a request to stop the run. */
  readonly #listeners = new Map<L, ((request: StopRequest) => void) | undefined>()
  readonly #writers = new Set<SessionWriter>()
  readonly #onStored: (id: string) => void

  /** `onStored` is called after each append. */
  constructor(onStored: (id: string) => void) {
    this.#onStored = onStored
  }

  /** The sessions that are open now. */
  get sessions(): readonly L[] {
    return [...this.#listeners.keys()]
  }

  add(session: L): SessionWriter {
    const { id, head, length } = session
    const onStored = (): void => this.#onStored(id)
    const writer: SessionWriter = {
      head,
      length,
      append: (lines, options = {}) => {
        if (!this.#listeners.has(session)) throw sessionReleased(id)
        const { head: newHead, pieces = [] } = options
        if (lines.length + pieces.length === 0 && newHead === undefined) return undefined
        const storing = session.append(lines, options)
        if (!(storing instanceof Promise)) return onStored()
        storing.then(onStored, () => undefined) // the caller handles the failure
        return storing
      },
      onStop: (listener) => {
        if (session.stop !== undefined) listener(session.stop)
        else if (this.#listeners.has(session)) this.#listeners.set(session, listener)
      },
      release: async () => {
        this.#writers.delete(writer)
        if (this.#listeners.delete(session)) await session.unlock()
      },
    }
    this.#listeners.set(session, undefined)
    this.#writers.add(writer)
    return writer
  }

  /** The run of a session is to stop. Of several requests the first one counts. */
  stop(session: L, request: StopRequest): void {
    const listener = this.#listeners.get(session)
    if (session.stop === undefined) listener?.(request)
    session.stop ??= request
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#writers].map((writer) => writer.release()))
  }
}
