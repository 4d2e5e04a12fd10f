import { describeLockOwner, isDead, newLockOwner } from './lock-owner.ts'
import { facetsOf, type Facets } from './list-sessions.ts'
import { OpenWriters, type Batch, type LockedLines } from './open-writers.ts'
import type { Sql } from './sql.ts'
import type { LockKey, Queries, SessionRow, SqlDatabase } from './sql-queries.ts'
import {
  readHead,
  readStop,
  sessionBusy,
  sessionFenced,
  sessionUnknown,
  storeFailed,
  type SessionWriter,
} from './store.ts'

// A session is locked while it has an owner, its lease has not expired, and the process of the owner is not known to be dead.
// Each lock increments the epoch, and each write checks it. Keys are not used again, so a writer of a deleted session is fenced.

type Options = {
  /** The database. Throws if the store was closed. */
  readonly open: () => SqlDatabase
  readonly query: <R>(statement: Sql) => Promise<readonly R[]>
  readonly queries: Queries
  readonly leaseMs: number
  readonly onStored: (id: string) => void
}

type Locked = LockedLines & LockKey
/** `isTimeDue`: whether lines were appended since the time of the session was written. */
type Unreleased = LockKey & { readonly isTimeDue: boolean }

/** How often a store looks for requests to stop its runs, and renews its leases. */
const BEAT_MS = 500
const MAX_ATTEMPTS = 4
/** While a session is locked, the time at which it was last written is not written more often. */
const TIME_MS = 1_000

/** The owner of a lock, if it is certain that its process is dead. */
export function deadOwner({ owner }: Pick<SessionRow, 'owner'>): string | null {
  return owner !== null && isDead(owner) ? owner : null
}

/** The locks of a store in a database. */
export class SqlLocks {
  readonly #of: Options
  readonly #writers: OpenWriters<Locked>
  /** Locks that could not be released, because the database had failed. */
  readonly #unreleased = new Map<SessionRow['key'], Unreleased>()
  #knownOwner: string | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(of: Options) {
    this.#of = of
    this.#writers = new OpenWriters(of.onStored)
  }

  get #owner(): string {
    return (this.#knownOwner ??= newLockOwner())
  }

  /** Implements `SessionStore.open`. */
  async open(id: string, create: boolean): Promise<SessionWriter> {
    const { query, queries, leaseMs } = this.#of
    const row = await this.whenFree(id, async (found, dead) => {
      if (found === undefined) {
        if (!create) throw sessionUnknown(id)
        await query(queries.create(id)) // the next attempt finds it
        return undefined
      }
      readHead(id, found.head) // first, so that a damaged session is not changed
      return (await query<SessionRow>(queries.lock(found, { owner: this.#owner, leaseMs, dead })))[0]
    })
    this.#unreleased.delete(row.key)
    this.#timer ??= setInterval(() => void this.beat(), Math.min(BEAT_MS, leaseMs / 3)).unref()
    return this.#writers.add(this.#lockedLines(row))
  }

  /**
   * Attempts something with a session until it succeeds. It fails if the session is locked, or if it has changed since it was
   * found: a statement that a process sent before it died may run later. In the second case it is attempted again.
   */
  async whenFree<T>(
    id: string,
    attempt: (found: SessionRow | undefined, dead: string | null) => Promise<T | undefined>,
  ): Promise<T> {
    const { query, queries } = this.#of
    let [found] = await query<SessionRow>(queries.find(id))
    for (let left = MAX_ATTEMPTS; left > 0; left--) {
      const done = await attempt(found, found === undefined ? null : this.#deadOwner(found))
      if (done !== undefined) return done
      const [now] = await query<SessionRow>(queries.find(id))
      if (now?.key === found?.key && now?.epoch === found?.epoch) break
      found = now
    }
    throw sessionBusy(id, describeLockOwner(found?.owner))
  }

  /** A lock that this store could not release counts as that of a dead process. */
  #deadOwner(found: SessionRow): string | null {
    return this.#unreleased.get(found.key)?.epoch === found.epoch ? found.owner : deadOwner(found)
  }

  #lockedLines(row: SessionRow): Locked {
    const { id, key, epoch, length } = row
    const { open, queries } = this.#of
    const head = readHead(id, row.head)
    let facets = facetsOf(head)
    let timed = -Infinity
    let isTimeDue = false
    let next = length
    let last: Promise<void> | undefined
    let failed = false
    const store = (batch: Batch): void | Promise<void> => {
      if (failed) throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
      failed = true // until the database has confirmed it: a connection may break after the lines were stored
      const news = batch.head !== undefined && !isSame(batch.head.facets, facets) ? batch.head.facets : undefined
      facets = news ?? facets
      const isUnseen = batch.lines.length + batch.pieces.length === 0 // watchers must notice it
      isTimeDue = news === undefined && !isUnseen && performance.now() - timed < TIME_MS
      if (!isTimeDue) timed = performance.now()
      const statements = queries.append({ lock: row, next, batch }, { time: !isTimeDue, facets: news })
      const stored = open().queryAll(...statements)
      const confirm = (rows: readonly unknown[]): void => {
        failed = false
        if (rows.length === 0) throw sessionFenced(id)
        next += batch.lines.length
      }
      return stored instanceof Promise ? stored.then(confirm) : confirm(stored)
    }
    return {
      id,
      key,
      epoch,
      length,
      head,
      stop: readStop(row.stop),
      append(batch) {
        const stored = last === undefined ? store(batch) : last.then(() => store(batch))
        if (stored instanceof Promise) last = stored.catch(() => undefined)
        return stored
      },
      unlock: async () => {
        await last
        await this.#unlock({ key, epoch, isTimeDue })
      },
    }
  }

  async #unlock(lock: Unreleased): Promise<void> {
    const { query, queries } = this.#of
    this.#unreleased.set(lock.key, lock)
    await query(queries.unlock(lock, lock.isTimeDue))
    if (this.#unreleased.get(lock.key) === lock) this.#unreleased.delete(lock.key)
    if (this.#writers.size + this.#unreleased.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Renews the leases of all writers, stops runs on request, and releases what could not be released before. */
  async beat(): Promise<void> {
    const { query, queries, leaseMs } = this.#of
    const runs = new Map([...this.#writers.runs()].map(([{ key }, stop]) => [key, stop]))
    try {
      for (const lock of this.#unreleased.values()) await this.#unlock(lock)
      if (runs.size === 0) return
      const rows = await query<SessionRow>(queries.renew([...runs.keys()], { owner: this.#owner, leaseMs }))
      for (const { key, stop } of rows) {
        const request = readStop(stop)
        if (request !== undefined) runs.get(key)?.(request)
      }
    } catch {
      // The next beat tries again. A lease that expires meanwhile is noticed by the next write.
    }
  }

  async close(): Promise<void> {
    await this.#writers.close()
    await Promise.allSettled([...this.#unreleased.values()].map((lock) => this.#unlock(lock)))
    clearInterval(this.#timer)
  }
}

function isSame(a: Facets, b: Facets): boolean {
  return a.status === b.status && a.agent === b.agent && a.user === b.user
}
