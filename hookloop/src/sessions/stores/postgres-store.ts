import type { JsonObject } from '../../state/json.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { checkLease, describeLockOwner, isDead, renewLease, newLockOwner, parseLockOwner } from './lock-owner.ts'
import { createTables, queriesFor, type PostgresPool, type Queries } from './postgres-queries.ts'
import {
  checkLines,
  checkSessionId,
  headText,
  readHead,
  sessionBusy,
  sessionCorrupt,
  sessionFenced,
  sessionReleased,
  sessionUnknown,
  storeFailed,
  type ListedSession,
  type SessionStore,
  type SessionWriter,
  type StoredSession,
} from './store.ts'

export type PostgresStoreOptions = {
  /** Where the database is; the package `pg` is then loaded with the first call. */
  readonly connectionString?: string
  /** A pool of yours instead. It is not closed with the store. */
  readonly pool?: PostgresPool
  /** Where the tables are, and are made if they are not. `hookloop`. */
  readonly schema?: string
  /** How long a writer that cannot be looked at may be silent before its session is taken over. 30 seconds. */
  readonly leaseMs?: number
}

const ATTEMPTS = 4

type Pool = PostgresPool & { end?(): Promise<void> }

/** Sessions in a Postgres database, for any number of processes and machines. Whose lease is over, its clock decides. */
export function postgresStore(options: PostgresStoreOptions): SessionStore {
  const leaseMs = checkLease(options.leaseMs)
  const queries = queriesFor(options.schema ?? 'hookloop')
  if ((options.connectionString === undefined) === (options.pool === undefined))
    throw new AgentError('AGENT_INVALID_OPTION', 'postgresStore needs a connectionString or a pool.')
  const open = new Set<SessionWriter>()
  let connecting: Promise<Pool> | undefined
  let closed = false
  const connect = (): Promise<Pool> =>
    (connecting ??= connectTo(options).catch((error: unknown) => {
      connecting = undefined // it may be there the next time
      throw error
    }))
  const ask: Ask = async (query, values) => {
    if (closed) throw storeFailed('The store cannot be used', 'it was closed')
    const pool = await connect()
    try {
      return (await pool.query(queries[query], values)).rows as readonly Row[]
    } catch (error) {
      throw storeFailed('The database cannot be read or written', error)
    }
  }
  return {
    async open(id, { create = false } = {}) {
      checkSessionId(id)
      const lock = await lockSession(id, ask, { create, leaseMs })
      const writer = postgresWriter({ id, lock, ask, leaseMs, onRelease: () => void open.delete(writer) })
      open.add(writer)
      return writer
    },
    async read(id) {
      checkSessionId(id)
      return readSession(id, ask)
    },
    async list() {
      return (await ask('list', [])).map(listed)
    },
    async delete(id) {
      checkSessionId(id)
      await whenFree(id, ask, async (found) => {
        if (found === undefined) return true
        const { length } = await ask('delete', [found.key, found.epoch, isFree(found)])
        return length === 0 ? undefined : true
      })
    },
    async close() {
      try {
        for (const writer of open) await writer.release()
      } finally {
        closed = true
        const pool = await connecting?.catch(() => undefined)
        connecting = undefined
        if (options.pool === undefined) await pool?.end?.()
      }
    },
  }
}

/** Numbers that may be large come from the driver as text, and go back as they came. */
type Row = {
  readonly key: string
  readonly id: string
  readonly epoch: string
  readonly owner: string | null
  readonly head: string
  readonly length: string
  readonly updated_at: number
  readonly n: string
  readonly line: string
}

type Ask = (query: keyof Queries, values: unknown[]) => Promise<readonly Row[]>

async function connectTo(options: PostgresStoreOptions): Promise<Pool> {
  const pool = options.pool ?? (await ownPool(options.connectionString!))
  try {
    await createTables(pool, options.schema ?? 'hookloop')
    return pool
  } catch (error) {
    if (options.pool === undefined) await (pool as Pool).end?.()
    throw storeFailed('The database cannot be used', error)
  }
}

async function ownPool(connectionString: string): Promise<Pool> {
  let pg: typeof import('pg')
  try {
    pg = await import('pg')
  } catch (error) {
    throw new AgentError('STORE_FAILED', `postgresStore needs the package pg: npm install pg (${messageOf(error)})`, {
      value: 'pg',
      cause: error,
    })
  }
  const pool = new pg.default.Pool({ connectionString, allowExitOnIdle: true, connectionTimeoutMillis: 10_000 })
  pool.on('error', () => undefined) // a connection that breaks while nobody uses it is replaced by the pool
  return pool
}

type SessionLock = { readonly key: string; readonly epoch: string; readonly lines: readonly string[] }

async function lockSession(
  id: string,
  ask: Ask,
  { create, leaseMs }: { readonly create: boolean; readonly leaseMs: number },
): Promise<SessionLock> {
  const owner = JSON.stringify(newLockOwner())
  const { key, epoch, length } = await whenFree(id, ask, async (found) => {
    if (found === undefined && !create) throw sessionUnknown(id)
    if (found === undefined) await ask('create', [id, leaseMs]) // and then it is found
    // Whoever is the first to count its epoch up has it; the lease is looked at in the same statement.
    return found && (await ask('lock', [found.key, found.epoch, isFree(found), owner, leaseMs]))[0]
  })
  try {
    return { key, epoch, lines: await readLines({ id, key, length }, ask) }
  } catch (error) {
    await ask('release', [key, epoch])
    throw error
  }
}

/**
 * Tries something with a session as it was found, until it could be done. It cannot if somebody holds it, or if it is no
 * longer as it was found: what a process has sent before it died may be done after that was seen.
 */
async function whenFree<T>(
  id: string,
  ask: Ask,
  attempt: (found: Row | undefined) => Promise<T | undefined>,
): Promise<T> {
  let [found] = await ask('find', [id])
  for (let left = ATTEMPTS; left > 0; left--) {
    const done = await attempt(found)
    if (done !== undefined) return done
    const [now] = await ask('find', [id])
    if (now?.key === found?.key && now?.epoch === found?.epoch) break
    found = now
  }
  throw sessionBusy(id, describeLockOwner(parseLockOwner(found?.owner)))
}

/** Whether it is known that nobody writes; if not, the lease decides. */
function isFree({ owner }: Row): boolean {
  const known = owner === null ? undefined : parseLockOwner(owner)
  return owner === null || (known !== undefined && isDead(known))
}

function postgresWriter(of: {
  readonly id: string
  readonly lock: SessionLock
  readonly ask: Ask
  readonly leaseMs: number
  readonly onRelease: () => void
}): SessionWriter {
  const { id, lock, ask } = of
  let next = lock.lines.length
  let released = false
  let failed = false
  let last: Promise<void> = Promise.resolve()
  const stop = renewLease(of.leaseMs, () => {
    ask('renew', [lock.key, lock.epoch]).catch(() => undefined) // then the lease runs out, and this writer is fenced
  })
  const store = async (lines: readonly string[], head: string | undefined): Promise<void> => {
    if (failed) throw storeFailed(`The session "${id}" cannot be written`, 'an earlier write failed')
    failed = true // until it is known to be stored: a connection may break when it is, and before that is heard
    const [held] = await ask('append', [lock.key, lock.epoch, next, lines, head ?? null])
    failed = false
    if (held === undefined) throw sessionFenced(id)
    next += lines.length
  }
  return {
    lines: lock.lines,
    append(lines, head) {
      if (released) throw sessionReleased(id)
      checkLines(lines)
      const text = head === undefined ? undefined : headText(head)
      if (lines.length === 0 && text === undefined) return undefined
      const kept = lines.slice()
      const stored = last.then(() => store(kept, text)) // one after the other, whatever connection they take
      last = stored.catch(() => undefined)
      return stored
    },
    async release() {
      if (released) return
      released = true
      stop()
      of.onRelease()
      await last
      await ask('release', [lock.key, lock.epoch])
    },
  }
}

async function readSession(id: string, ask: Ask): Promise<StoredSession | undefined> {
  const [row] = await ask('find', [id])
  if (row === undefined) return undefined
  try {
    return { head: readHead(id, row.head), lines: await readLines(row, ask) }
  } catch (error) {
    const [now] = await ask('find', [id])
    if (now?.key !== row.key) return readSession(id, ask) // it was deleted meanwhile
    throw error
  }
}

/** As many lines as the row says: what is appended meanwhile belongs to a later moment. */
async function readLines(row: Pick<Row, 'id' | 'key' | 'length'>, ask: Ask): Promise<readonly string[]> {
  const rows = row.length === '0' ? [] : await ask('lines', [row.key, row.length])
  const lines = rows.map(({ n, line }, i) => {
    if (Number(n) !== i) throw sessionCorrupt(row.id, `its line ${i + 1} is missing`)
    return line
  })
  if (lines.length === Number(row.length)) return lines
  throw sessionCorrupt(row.id, `it has ${lines.length} lines instead of ${row.length}`)
}

function listed(row: Row): ListedSession {
  const [id, updatedAt] = [row.id, Math.trunc(row.updated_at)]
  let head: JsonObject
  try {
    head = readHead(id, row.head)
  } catch (error) {
    return { id, head: {}, updatedAt, problem: messageOf(error) }
  }
  return { id, head, updatedAt }
}
