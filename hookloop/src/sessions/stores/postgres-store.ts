import { optionTypes } from '../../state/option-types.ts'
import { checkOptions } from '../../state/check-options.ts'
import { AgentError } from '../../errors.ts'
import { withTimeout } from '../../system/timeout.ts'
import { checkLease, describeLockOwner, isDead, newLockOwner, parseLockOwner, toSessionLock } from './lock-owner.ts'
import { countSessions, selectPage, storedStatuses } from './list-sessions.ts'
import { OpenWriters, type Batch, type LockedLines } from './open-writers.ts'
import { changedText, joinChanges, retryChange } from './shared-value.ts'
import { connectTo, type Pool } from './postgres-connect.ts'
import { channelOf, Listener, Notifier, STOP } from './postgres-listener.ts'
import { queriesFor, type PostgresPool, type Queries } from './postgres-queries.ts'
import { postgresStops } from './postgres-stops.ts'
import {
  checkSessionId,
  checkStoreCall,
  listedSession,
  readHead,
  readStop,
  sessionBusy,
  sessionCorrupt,
  sessionFenced,
  sessionUnknown,
  storeFailed,
  type Piece,
  type ReadOptions,
  type SessionFilter,
  type SessionStore,
  type StoredSession,
} from './store.ts'
import { pollEvery, SessionWatchers } from './session-watchers.ts'

/** Options of `postgresStore`. */
export type PostgresStoreOptions = {
  /** The address of the database. The package `pg` is loaded with the first call. */
  readonly connectionString?: string
  /** Your own pool instead. It is not closed with the store. */
  readonly pool?: PostgresPool
  /** The schema of the tables, which are created if they are missing. Default `hookloop`. */
  readonly schema?: string
  /** How long a lock stays in force after its owner last renewed it, if the owner cannot be checked. Default 30,000. */
  readonly leaseMs?: number
}

const MAX_ATTEMPTS = 4
/** A connection that answers nothing for as long as a lease, and at most this long, is broken: packets may get lost without an error. */
const MAX_QUERY_MS = 60_000
/** How often it is checked whether another process has written, without and with notifications. */
const [POLL_MS, LISTENING_POLL_MS] = [100, 1_000]

/**
 * A session store in a Postgres database, for any number of processes and machines. The clock of the database decides
 * whether a lease has expired.
 *
 * @example
 * const store = postgresStore({ connectionString: process.env.DATABASE_URL })
 * const agent = createAgent({ model, store })
 */
export function postgresStore(options: PostgresStoreOptions): SessionStore {
  checkOptions('postgresStore', options, {
    connectionString: optionTypes.text,
    pool: optionTypes.any,
    schema: optionTypes.text,
    leaseMs: optionTypes.any,
  })
  const leaseMs = checkLease(options.leaseMs)
  const queries = queriesFor(options.schema ?? 'hookloop')
  if ((options.connectionString === undefined) === (options.pool === undefined))
    throw new AgentError('AGENT_INVALID_OPTION', 'postgresStore needs a connectionString or a pool.')
  const channel = channelOf(options.schema ?? 'hookloop')
  let connecting: Promise<Pool> | undefined
  let closed = false
  const connect = async (): Promise<Pool> => {
    if (closed) throw storeFailed('The store cannot be used', 'it was closed')
    return (connecting ??= connectTo(options).catch((error: unknown) => {
      connecting = undefined // the next call tries again
      throw error
    }))
  }
  const timeoutMs = Math.min(Math.max(leaseMs, 5_000), MAX_QUERY_MS)
  const noAnswer = (): Error => new Error(`no answer within ${timeoutMs} ms`)
  const query: Query = async (name, values) => {
    const pool = await connect()
    const text = queries[name]
    try {
      // A pool of the application may have no timeout: a database that hangs must not hang the run.
      const { rows } = await (options.pool === undefined
        ? pool.query({ text, values, query_timeout: timeoutMs })
        : withTimeout(pool.query(text, values), timeoutMs, noAnswer))
      return rows as readonly Row[]
    } catch (error) {
      throw storeFailed('The database cannot be read or written', error)
    }
  }
  const listener: Listener = new Listener({
    pool: connect,
    channel,
    onChange: (id) => watchers.changed(id),
    onStop: (id) => void stops.check(id),
  })
  const { stops, end } = postgresStops((ids) => query('stops', [ids]), listener)
  const notifier = new Notifier((ids) => query('notify', [channel, ids]))
  const poll = async (): Promise<void> => {
    try {
      const rows = await query('versions', [watchers.ids])
      const versions = new Map(rows.map(({ id, key, length, n }) => [id, `${key} ${length} ${n}`]))
      watchers.check((id) => versions.get(id))
    } catch {
      // the reads of the watchers report it
    }
  }
  const polling = pollEvery(() => (listener.isListening ? LISTENING_POLL_MS : POLL_MS), poll)
  const watchers: SessionWatchers = new SessionWatchers({
    start() {
      listener.start()
      polling.start()
    },
    stop() {
      listener.stop()
      polling.stop()
    },
  })
  const writers = new OpenWriters(
    {
      changed(id) {
        watchers.changed(id)
        notifier.changed(id)
      },
    },
    stops,
    leaseMs,
  )
  const updateValue = joinChanges((name, change) =>
    retryChange(name, async () => {
      const [row] = await query('getValue', [name])
      const { line, n, now_ms } = row!
      const { text, value } = changedText(line ?? undefined, change, now_ms)
      if (text === line) return value
      const changed = await query('setValue', [name, text, n ?? 0])
      return changed.length === 0 ? undefined : value
    }),
  )
  const store: SessionStore = {
    async open(id, given = {}) {
      checkStoreCall('open', id, given)
      const { create = false } = given
      await writers.releaseStale(id)
      return writers.add(await lockSession(id, query, { create, leaseMs }))
    },
    async read(id, part = {}) {
      checkStoreCall('read', id, part)
      return readSession(id, query, part)
    },
    async list(given = {}) {
      return selectPage(given, {
        find: async (id) => {
          const [row] = await query('find', [id])
          return row && { id, updatedAt: row.updated_ms }
        },
        select: async (after, limit) => {
          const place = [after?.updatedAt ?? null, after?.id ?? null, limit ?? null]
          const rows = await query('list', [...filterValues(given), ...place])
          return rows.map((row) => {
            const isLocked = !isUnlocked(row) && !row.expired
            const lock = isLocked ? toSessionLock(parseLockOwner(row.owner)) : undefined
            return listedSession({ ...row, updatedAt: row.updated_ms, lock })
          })
        },
      })
    },
    count: async (given = {}) =>
      countSessions(given, {
        count: async (filter) => Number((await query('count', filterValues(filter)))[0]!.n),
        locked: async (filter) => (await query('locks', filterValues(filter))).filter((row) => !isUnlocked(row)).length,
      }),
    async delete(id, given = {}) {
      checkStoreCall('delete', id, given)
      const { before = Number.MAX_SAFE_INTEGER } = given
      const isDeleted = await whenUnlocked(id, query, async (found) => {
        if (found === undefined || found.updated_ms >= before) return false
        const { length } = await query('delete', [found.key, found.epoch, isUnlocked(found), Math.ceil(before)])
        return length === 0 ? undefined : true
      })
      if (isDeleted) watchers.changed(id)
      if (isDeleted) notifier.changed(id)
      return isDeleted
    },
    update: async (name, change) => updateValue(checkSessionId(name), change),
    watch: (id, onChange, onEnd) => watchers.watch(id, onChange, onEnd),
    async requestStop(id, request) {
      checkStoreCall('requestStop', id, request)
      const [found] = await query('find', [id])
      if (found === undefined) return false
      const { length } = await query('requestStop', [id, JSON.stringify(request), !isUnlocked(found)])
      if (length === 0) return false
      await stops.check(id)
      notifier.changed(`${STOP}${id}`)
      return true
    },
    async close() {
      watchers.close()
      end()
      try {
        await writers.close()
      } finally {
        await notifier.idle()
        closed = true
        const pool = await connecting?.catch(() => undefined)
        connecting = undefined
        if (options.pool === undefined) await pool?.end?.()
      }
    },
  }
  return store
}

/** The driver returns bigint columns as strings, and takes them back as such. */
type Row = {
  readonly key: string
  readonly id: string
  readonly epoch: string
  readonly owner: string | null
  readonly head: string
  readonly stop: string | null
  readonly length: string
  readonly updated_ms: number
  /** The clock of the database. */
  readonly now_ms: number
  readonly expired: boolean
  readonly n: string | null
  readonly line: string
  /** 0: the session, 1: a line, 2: a piece. */
  readonly part: number
}

function filterValues(filter: SessionFilter): unknown[] {
  const { agent = null, user = null } = filter
  return [agent, user, storedStatuses(filter) ?? null]
}

type Query = (name: keyof Queries, values: unknown[]) => Promise<readonly Row[]>

async function lockSession(
  id: string,
  query: Query,
  { create, leaseMs }: { readonly create: boolean; readonly leaseMs: number },
): Promise<LockedLines> {
  const owner = JSON.stringify(newLockOwner())
  const { key, epoch, length, head, stop } = await whenUnlocked(id, query, async (found) => {
    if (found === undefined && !create) throw sessionUnknown(id)
    if (found === undefined) await query('create', [id, leaseMs]) // the next attempt finds it
    // The first process to increment the epoch has the lock. The same statement checks the lease.
    return found && (await query('lock', [found.key, found.epoch, isUnlocked(found), owner, leaseMs]))[0]
  })
  const unlock = async (): Promise<void> => void (await query('unlock', [key, epoch]))
  let next = Number(length)
  let failed = false
  let last: Promise<void> = Promise.resolve()
  const store = async ({ lines, head, pieces, startsTurn }: Batch): Promise<void> => {
    if (failed) throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
    failed = true // until the database has confirmed it: a connection may break after the lines were stored
    const facets = head && [head.facets.status, head.facets.agent, head.facets.user]
    const values = [key, epoch, next, lines, head?.text ?? null, facets ?? null]
    const added = [pieces.map(({ seq }) => seq), pieces.map(({ text }) => text), startsTurn]
    const hasPieces = pieces.length > 0 || startsTurn
    const [locked] = hasPieces ? await query('appendPieces', [...values, ...added]) : await query('append', values)
    failed = false
    if (locked === undefined) throw sessionFenced(id)
    next += lines.length
  }
  return {
    id,
    head: readHead(id, head),
    length: next,
    stop: readStop(stop),
    append(batch) {
      const copy = { ...batch, lines: batch.lines.slice() }
      const stored = last.then(() => store(copy)) // in order, whichever connections the pool uses
      last = stored.catch(() => undefined)
      return stored
    },
    renew: async () => void (await query('renew', [key, epoch])),
    async unlock() {
      await last
      await unlock()
    },
  }
}

/**
 * Attempts something with a session until it succeeds. It fails if the session is locked, or if it has changed since it was
 * found: a statement that a process sent before it died may run later. In the second case it is attempted again.
 */
async function whenUnlocked<T>(
  id: string,
  query: Query,
  attempt: (found: Row | undefined) => Promise<T | undefined>,
): Promise<T> {
  let [found] = await query('find', [id])
  for (let left = MAX_ATTEMPTS; left > 0; left--) {
    const done = await attempt(found)
    if (done !== undefined) return done
    const [now] = await query('find', [id])
    if (now?.key === found?.key && now?.epoch === found?.epoch) break
    found = now
  }
  throw sessionBusy(id, describeLockOwner(parseLockOwner(found?.owner)))
}

/** Whether it is certain that no process writes. Otherwise the lease decides. */
function isUnlocked({ owner }: Row): boolean {
  const known = owner === null ? undefined : parseLockOwner(owner)
  return owner === null || (known !== undefined && isDead(known))
}

async function readSession(id: string, query: Query, options: ReadOptions): Promise<StoredSession | undefined> {
  const { after = -1, before = Infinity, pieces: range } = options
  const between = [after, before, range?.after ?? null, range?.before ?? null].map(asBigint)
  const [session, ...rows] = await query('read', [id, ...between])
  if (session === undefined) return undefined
  const { key, n, line: head } = session
  const lines: string[] = []
  const pieces: Piece[] = []
  for (const row of rows) {
    if (row.part === 2) pieces.push({ seq: Number(row.n), text: row.line })
    else if (Number(row.n) === after + 1 + lines.length) lines.push(row.line)
    else throw sessionCorrupt(id, `its line ${after + 2 + lines.length} is missing`)
  }
  const end = Math.max(after + 1, Math.min(Number(n), before))
  if (after + 1 + lines.length !== end && after < end)
    throw sessionCorrupt(id, `it has ${after + 1 + lines.length} lines instead of ${end}`)
  return { head: readHead(id, head), lines, ...(range !== undefined && { key, pieces }) }
}

/** Infinity is no number for the database. */
function asBigint(value: number | null): number | null {
  return value === null ? null : Math.max(-1, Math.min(value, Number.MAX_SAFE_INTEGER))
}
