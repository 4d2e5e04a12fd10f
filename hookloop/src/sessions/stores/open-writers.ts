import type { JsonObject } from '../../state/json.ts'
import { facetsOf } from './list-sessions.ts'
import {
  checkLines,
  headText,
  sessionReleased,
  type HeadToStore,
  type PagesChange,
  type ReadOptions,
  type SessionWriter,
  type StoredSession,
} from './store.ts'

/** A session that a store has locked: what differs between stores. */
export type LockedLines = {
  readonly id: string
  readonly head: JsonObject
  readonly length: number
  read(options: ReadOptions): StoredSession | Promise<StoredSession>
  /** Stores lines that were checked. Called with at least one line or a head, and never after `unlock`. */
  append(lines: readonly string[], head: HeadToStore | undefined, pages: PagesChange | undefined): void | Promise<void>
  /** Extends the lease, in stores that have one. A failure is ignored: the lease expires, and this writer is fenced. */
  renew?(): void | Promise<void>
  unlock(): void | Promise<void>
}

/** The writers that a store has open. Checks what they append, renews their leases and releases them with the store. */
export class OpenWriters {
  readonly #writers = new Set<SessionWriter>()
  /** Sessions whose lock could not be released: the store had failed. */
  readonly #unreleased = new Map<string, LockedLines>()
  readonly #leaseMs: number

  constructor(leaseMs = 0) {
    this.#leaseMs = leaseMs
  }

  add(session: LockedLines): SessionWriter {
    let released = false
    const renewing = session.renew && setInterval(() => void renew(session), this.#leaseMs / 3).unref()
    const writer: SessionWriter = {
      head: session.head,
      length: session.length,
      read: (options = {}) => session.read(options),
      append(lines, head, pages) {
        if (released) throw sessionReleased(session.id)
        checkLines(lines)
        if (pages !== undefined) checkLines(pages.add)
        const stored = head && { text: headText(head), facets: facetsOf(head) }
        const isNothing = lines.length === 0 && stored === undefined && pages === undefined
        return isNothing ? undefined : session.append(lines, stored, pages)
      },
      release: async () => {
        if (released) return
        released = true
        clearInterval(renewing)
        this.#writers.delete(writer)
        try {
          await session.unlock()
        } catch (error) {
          this.#releaseLater(session)
          throw error
        }
      },
    }
    this.#writers.add(writer)
    return writer
  }

  /** Releases a lock of this process that it could not release before. Called before a session is locked. */
  async releaseStale(id: string): Promise<void> {
    const session = this.#unreleased.get(id)
    if (session === undefined) return
    await session.unlock()
    this.#unreleased.delete(id)
  }

  /** Other processes would wait for the lease to expire. */
  #releaseLater(session: LockedLines): void {
    if (this.#leaseMs === 0) return
    this.#unreleased.set(session.id, session)
    const until = performance.now() + this.#leaseMs
    const again = setInterval(() => {
      const isOver = performance.now() > until || this.#unreleased.get(session.id) !== session
      if (isOver) return clearInterval(again)
      this.releaseStale(session.id).then(
        () => clearInterval(again),
        () => undefined, // the next attempt, until the lease has expired
      )
    }, this.#leaseMs / 30).unref()
  }

  async close(): Promise<void> {
    for (const writer of this.#writers) await writer.release()
  }
}

async function renew(session: LockedLines): Promise<void> {
  try {
    await session.renew?.()
  } catch {
    // see LockedLines.renew
  }
}
