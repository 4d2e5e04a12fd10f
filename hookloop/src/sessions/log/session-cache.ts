import type { SessionReader } from './session-reader.ts'

const MAX_CHARS = 32_000_000
const CLEAR_AFTER_MS = 60_000

/**
 * Sessions that were used recently, so that the next message of a conversation only reads what was appended since. The one that
 * was used last stays, however long it is; all are dropped after a minute without use.
 */
export class SessionCache {
  /** In order of their last use. */
  readonly #sessions = new Map<string, SessionReader>()
  readonly #stores = new WeakMap<object, number>()
  #lastStore = 0
  #chars = 0
  #clearing: NodeJS.Timeout | undefined

  /** Removes a session and returns it. */
  take(store: object, id: string): SessionReader | undefined {
    const key = this.#key(store, id)
    const found = this.#sessions.get(key)
    this.#remove(key)
    return found
  }

  set(store: object, id: string, session: SessionReader): void {
    const key = this.#key(store, id)
    this.#remove(key)
    this.#sessions.set(key, session)
    this.#chars += session.chars
    for (const oldest of this.#sessions.keys()) {
      if (this.#chars <= MAX_CHARS || oldest === key) break
      this.#remove(oldest)
    }
    clearTimeout(this.#clearing)
    this.#clearing = setTimeout(() => this.#clear(), CLEAR_AFTER_MS).unref()
  }

  #key(store: object, id: string): string {
    const known = this.#stores.get(store) ?? ++this.#lastStore
    this.#stores.set(store, known)
    return `${known} ${id}`
  }

  #remove(key: string): void {
    this.#chars -= this.#sessions.get(key)?.chars ?? 0
    this.#sessions.delete(key)
  }

  #clear(): void {
    this.#sessions.clear()
    this.#chars = 0
  }
}
