import { describeLockOwner, isDead, newLockOwner } from './lock-owner.ts'
import { facetsOf, type Facets } from './list-sessions.ts'
import { OpenWriters, type LockedLines } from './open-writers.ts'
import type { Sql } from './sql.ts'
import type { LockKey, Queries, SessionRow, SqlDatabase } from './sql-queries.ts'
import {
  readHead,
  readStop,
  sessionBusy,
  sessionFenced,
  sessionUnknown,
  storeFailed,
  type AppendOptions,
  type SessionWriter,
} from './store.ts'

// A session is locked while it has an owner, its lease has not expired, and its owner is not known to be dead. Each lock
// increments the epoch, and each write checks it. Keys are not used again, so a writer of a deleted session is fenced.

type Options = {
  /** The database. Throws if the store was closed. */
  readonly open: () => SqlDatabase
  readonly query: <R>(statement: Sql) => Promise<readonly R[]>
  readonly queries: Queries
  readonly leaseMs: number
  readonly onStored: (id: string) => void
}

type Locked = LockedLines & LockKey

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
  /** The sessions that this store has locked, or is about to lock. */
  readonly #held = new Set<SessionRow['key']>()
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
      const { key } = found
      if (this.#held.has(key)) return undefined
      this.#held.add(key)
      let locked: SessionRow | undefined
      try {
        ;[locked] = await query<SessionRow>(queries.lock(found, { owner: this.#owner, leaseMs, dead }))
      } finally {
        if (locked === undefined) this.#held.delete(key)
      }
      return locked
    })
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
    for (let attempts = MAX_ATTEMPTS; attempts > 0; attempts--) {
      const done = await attempt(found, found === undefined ? null : this.#deadOwner(found))
      if (done !== undefined) return done
      const [now] = await query<SessionRow>(queries.find(id))
      if (now?.key === found?.key && now?.epoch === found?.epoch) break
      found = now
    }
    throw sessionBusy(id, describeLockOwner(found?.owner))
  }

  /** A lock that this store has released counts as that of a dead process: the database may not know of it. */
  #deadOwner(found: SessionRow): string | null {
    const isReleased = found.owner === this.#owner && !this.#held.has(found.key)
    return isReleased ? found.owner : deadOwner(found)
  }

  #lockedLines(row: SessionRow): Locked {
    const { id, key, epoch, length } = row
    const { open, query, queries } = this.#of
    const head = readHead(id, row.head)
    let facets = facetsOf(head)
    let timed = -Infinity
    let isTimeDue = false
    let next = length
    let isUncertain = false
    return {
      id,
      key,
      epoch,
      length,
      head,
      stop: readStop(row.stop),
      append: (lines, options) => {
        if (isUncertain)
          throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write has not ended well')
        isUncertain = true // until the database has confirmed it: a connection may break after the lines were stored
        const news = newFacets(options, facets)
        facets = news ?? facets
        const isUnseen = lines.length + (options.pieces?.length ?? 0) === 0 // watchers must notice it
        isTimeDue = news === undefined && !isUnseen && performance.now() - timed < TIME_MS
        if (!isTimeDue) timed = performance.now()
        const due = { time: !isTimeDue, facets: news }
        const stored = open().queryAll(...queries.append({ lock: row, next, lines, options }, due))
        const confirm = (rows: readonly unknown[]): void => {
          isUncertain = false
          if (rows.length === 0) throw sessionFenced(id)
          next += lines.length
        }
        return stored instanceof Promise ? stored.then(confirm) : confirm(stored)
      },
      unlock: async () => {
        this.#held.delete(key)
        if (this.#held.size === 0) this.#stopBeating()
        await query(queries.unlock(row, isTimeDue))
      },
    }
  }

  /** Renews the leases of all writers, and stops runs on request. */
  async beat(): Promise<void> {
    const { query, queries, leaseMs } = this.#of
    const sessions = new Map(this.#writers.sessions.map((session) => [session.key, session]))
    if (sessions.size === 0) return
    try {
      const rows = await query<SessionRow>(queries.renew([...sessions.keys()], { owner: this.#owner, leaseMs }))
      for (const { key, stop } of rows) {
        const request = readStop(stop)
        if (request !== undefined) this.#writers.stop(sessions.get(key)!, request)
      }
    } catch {
      // The next beat tries again. A lease that expires meanwhile is noticed by the next write.
    }
  }

  #stopBeating(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async close(): Promise<void> {
    await this.#writers.close()
    this.#stopBeating()
  }
}

/** What lists filter by, if it changes. */
function newFacets({ head }: AppendOptions, known: Facets): Facets | undefined {
  if (head === undefined) return undefined
  const facets = facetsOf(head)
  const isSame = facets.status === known.status && facets.agent === known.agent && facets.user === known.user
  return isSame ? undefined : facets
}
