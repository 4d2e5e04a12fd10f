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
        await session.unlock()
      },
    }
    this.#writers.add(writer)
    return writer
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
