import type { JsonObject } from '../../../values/json.ts'
import { BoundedMap } from '../../../values/bounded-map.ts'
import type { RanHandler } from './run-event.ts'

/** What handlers of a session share in this process. */
export class HookMemory {
  readonly #once = new BoundedMap<string, Set<string>>()
  readonly #late = new BoundedMap<string, string[]>()
  readonly #background = new Map<string, Set<{ readonly stop: AbortController }>>()
  /** Why the run of a session is to end, from a PermissionRequest hook. */
  readonly interrupts = new BoundedMap<string, string>()
  /** The common fields of a call, for its approval. */
  readonly calls = new BoundedMap<string, JsonObject>()
  /** Calls whose subagent continues because a hook requested it. */
  readonly continued = new BoundedMap<string, true>()

  /** Handlers with `once` that have run in a session. */
  onceDone(session: string): Set<string> {
    return this.#once.getOrAdd(session, () => new Set())
  }

  /** Stores the texts of a background handler for the next event. */
  follow(session: string, late: Promise<RanHandler>, stop: AbortController): void {
    const ended = this.startBackground(session, stop)
    void late.then(({ answer: { context = '', systemMessage = '' } }) => {
      ended()
      if (stop.signal.aborted) return
      const texts = [context, systemMessage].filter((text) => text !== '')
      if (texts.length > 0) this.#late.getOrAdd(session, () => []).push(...texts)
    })
  }

  /** Registers background work. Call the returned function when it has ended. */
  startBackground(session: string, stop: AbortController): () => void {
    const running = this.#background.get(session) ?? new Set()
    const one = { stop }
    this.#background.set(session, running.add(one))
    return () => {
      if (running.delete(one) && running.size === 0) this.#background.delete(session)
    }
  }

  /** Stops the background work of a session. */
  stopBackground(session: string): void {
    for (const { stop } of this.#background.get(session) ?? []) stop.abort()
  }

  /** Returns the texts of background handlers, once. */
  takeLate(session: string): readonly string[] {
    return this.#late.take(session) ?? []
  }
}
