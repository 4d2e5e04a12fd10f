import type { JsonObject } from '../../values/json.ts'
import type { StopRequest } from '../../core/state/stop-request.ts'
import { facetsOf, type Facets } from './list-sessions.ts'
import { isOpenStatus, sessionReleased, type AppendOptions, type Piece, type SessionWriter } from './store.ts'

/** A session that a store has locked: what differs between stores. */
export type LockedLines = {
  readonly id: string
  readonly head: JsonObject
  readonly length: number
  /** The request to stop its run, as far as this store knows. */
  stop: StopRequest | undefined
  /** Called with at least one line, head or piece, and never after `unlock`. */
  append(batch: Batch): void | Promise<void>
  unlock(): void | Promise<void>
}

/** What one append stores. */
export type Batch = {
  readonly lines: readonly string[]
  readonly head: { readonly value: JsonObject; readonly facets: Facets } | undefined
  /** Whether the head says that there is no open run: a request to stop it must be deleted. */
  readonly endsRun: boolean
  readonly pieces: readonly Piece[]
  /** All pieces that were stored before must be deleted. */
  readonly startsTurn: boolean
}

type Open<L extends LockedLines> = {
  readonly session: L
  readonly writer: SessionWriter
  listener: ((request: StopRequest) => void) | undefined
  /** How many runs have ended. */
  ended: number
}

/** The writers that a store has open. */
export class OpenWriters<L extends LockedLines> {
  readonly #open = new Set<Open<L>>()
  readonly #onStored: (id: string) => void

  /** `onStored` is called after each append. */
  constructor(onStored: (id: string) => void) {
    this.#onStored = onStored
  }

  get size(): number {
    return this.#open.size
  }

  add(session: L): SessionWriter {
    let released = false
    const onStored = (): void => this.#onStored(session.id)
    const writer: SessionWriter = {
      head: session.head,
      length: session.length,
      append(lines, options = {}) {
        if (released) throw sessionReleased(session.id)
        const batch = toBatch(lines, options)
        if (lines.length + batch.pieces.length === 0 && batch.head === undefined) return undefined
        if (batch.endsRun) endRun(open)
        const storing = session.append(batch)
        if (!(storing instanceof Promise)) return onStored()
        storing.then(onStored, () => undefined) // the caller handles the failure
        return storing
      },
      onStop(listener) {
        if (released) return
        if (session.stop !== undefined) listener(session.stop)
        else open.listener = listener
      },
      release: async () => {
        if (released) return
        released = true
        open.listener = undefined
        this.#open.delete(open)
        await session.unlock()
      },
    }
    const open: Open<L> = { session, writer, listener: undefined, ended: 0 }
    this.#open.add(open)
    return writer
  }

  /** The sessions that are open now, each with a function that stops its present run. */
  runs(): ReadonlyMap<L, (request: StopRequest) => void> {
    return new Map([...this.#open].map((open) => [open.session, stopperOf(open)]))
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#open].map(({ writer }) => writer.release()))
  }
}

function toBatch(lines: readonly string[], { head, pieces = [], startsTurn = false }: AppendOptions): Batch {
  if (head === undefined) return { lines, head, endsRun: false, pieces, startsTurn }
  const facets = facetsOf(head)
  return { lines, head: { value: head, facets }, endsRun: !isOpenStatus(facets.status), pieces, startsTurn }
}

function endRun(open: Open<LockedLines>): void {
  open.session.stop = undefined
  open.listener = undefined
  open.ended++
}

/** A request that is read while the run ends does not stop the next one. */
function stopperOf(open: Open<LockedLines>): (request: StopRequest) => void {
  const { ended } = open
  return (request) => {
    if (open.ended !== ended || open.session.stop !== undefined) return
    open.session.stop = request
    const { listener } = open
    open.listener = undefined
    listener?.(request)
  }
}
