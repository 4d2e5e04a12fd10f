import type { SessionReader } from './session-reader.ts'

const MAX_CHARS = 32_000_000
const CLEAR_AFTER_MS = 60_000

const caches = new WeakMap<object, SessionCache>()

/**
 * The sessions of a store that were used recently, so that the next message of a conversation only reads what was appended since.
 * The one that was used last stays, however long it is; all are dropped after a minute without use.
 */
export class SessionCache {
  /** In order of their last use. */
  readonly #sessions = new Map<string, SessionReader>()
  #chars = 0
  #clearing: NodeJS.Timeout | undefined

  static of(store: object): SessionCache {
    const known = caches.get(store) ?? new SessionCache()
    caches.set(store, known)
    return known
  }

  /** Removes a session and returns it. */
  take(id: string): SessionReader | undefined {
    const found = this.#sessions.get(id)
    if (this.#sessions.delete(id)) this.#chars -= found!.chars
    return found
  }

  set(id: string, session: SessionReader): void {
    this.take(id)
    this.#sessions.set(id, session)
    this.#chars += session.chars
    for (const oldest of this.#sessions.keys()) {
      if (this.#chars <= MAX_CHARS || oldest === id) break
      this.take(oldest)
    }
    clearTimeout(this.#clearing)
    this.#clearing = setTimeout(() => this.#clear(), CLEAR_AFTER_MS).unref()
  }

  #clear(): void {
    this.#sessions.clear()
    this.#chars = 0
  }
}
