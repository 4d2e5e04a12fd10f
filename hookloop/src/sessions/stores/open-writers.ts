import { checkOptions } from '../../state/check-options.ts'
import type { JsonObject } from '../../state/json.ts'
import type { StopRequest } from '../../state/stop-request.ts'
import { facetsOf } from './list-sessions.ts'
import type { StopListeners } from './stop-listeners.ts'
import {
  checkLine,
  checkLines,
  headText,
  isOpenStatus,
  sessionReleased,
  type HeadToStore,
  type AppendOptions,
  type SessionWriter,
  type Piece,
} from './store.ts'

/** A session that a store has locked: what differs between stores. */
export type LockedLines = {
  readonly id: string
  readonly head: JsonObject
  readonly length: number
  /** The request to stop its run, if one was stored when it was locked. */
  readonly stop: StopRequest | undefined
  /** Stores what was checked. Called with at least one line, head or piece, and never after `unlock`. */
  append(batch: Batch): void | Promise<void>
  /** Extends the lease, in stores that have one. A failure is ignored: the lease expires, and this writer is fenced. */
  renew?(): void | Promise<void>
  unlock(): void | Promise<void>
}

/** What one append stores. */
export type Batch = {
  readonly lines: readonly string[]
  readonly head: HeadToStore | undefined
  /** Whether the head says that there is no open run: a request to stop it must be deleted. */
  readonly endsRun: boolean
  readonly pieces: readonly Piece[]
  /** All pieces that were stored before must be deleted. */
  readonly startsTurn: boolean
}

const OPTIONS = ['head', 'pieces', 'startsTurn'] as const satisfies readonly (keyof AppendOptions)[]
const noPieces: readonly Piece[] = []

/** The writers that a store has open. Checks what they append, renews their leases and releases them with the store. */
export class OpenWriters {
  readonly #writers = new Set<SessionWriter>()
  /** Sessions whose lock could not be released: the store had failed. */
  readonly #unreleased = new Map<string, LockedLines>()
  readonly #watchers: { changed(id: string): void }
  readonly #stops: StopListeners
  readonly #leaseMs: number

  constructor(watchers: { changed(id: string): void }, stops: StopListeners, leaseMs = 0) {
    this.#watchers = watchers
    this.#stops = stops
    this.#leaseMs = leaseMs
  }

  add(session: LockedLines): SessionWriter {
    const onStored = (): void => this.#watchers.changed(session.id)
    let released = false
    let { stop: requested } = session
    let listener: ((request: StopRequest) => void) | undefined
    const unlisten = (): void => {
      if (listener !== undefined) this.#stops.remove(listener)
      listener = undefined
    }
    const renewing = session.renew && setInterval(() => void renew(session), this.#leaseMs / 3).unref()
    const writer: SessionWriter = {
      head: session.head,
      length: session.length,
      append(lines, options = {}) {
        if (released) throw sessionReleased(session.id)
        checkOptions('append', options, OPTIONS)
        const { head, pieces = noPieces, startsTurn = false } = options
        checkLines(lines)
        for (const { text } of pieces) checkLine(text, 'A piece')
        if (lines.length + pieces.length === 0 && head === undefined) return undefined
        const stored = head && { text: headText(head), facets: facetsOf(head) }
        const endsRun = stored !== undefined && !isOpenStatus(stored.facets.status)
        if (endsRun) {
          requested = undefined
          unlisten()
        }
        const storing = session.append({ lines, head: stored, endsRun, pieces, startsTurn })
        if (!(storing instanceof Promise)) return onStored()
        storing.then(onStored, () => undefined) // the caller handles the failure
        return storing
      },
      onStop: (listen) => {
        unlisten()
        if (released) return
        if (requested !== undefined) return listen(requested)
        listener = (request) => listen((requested = request))
        this.#stops.add(session.id, listener)
      },
      release: async () => {
        if (released) return
        released = true
        unlisten()
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
    await Promise.allSettled([...this.#unreleased.keys()].map((id) => this.releaseStale(id)))
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
