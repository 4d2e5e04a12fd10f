import { checkOptions } from '../../values/check-options.ts'
import { hashText } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { withTimeout } from '../../system/timeout.ts'
import { checkLease } from './lock-owner.ts'
import { connectTo, type Pool } from './postgres-connect.ts'
import { schemaName, type PostgresPool } from './postgres-tables.ts'
import { join, sql, type Sql } from './sql.ts'
import { sqlStore } from './sql-store.ts'
import { storeFailed, type SessionStore } from './store.ts'

/** Options of `postgresStore`. */
export type PostgresStoreOptions = {
  /** The address of the database. The package `pg` is loaded with the first call. Required without `pool`. */
  readonly connectionString?: string
  /** Your own pool instead. It is not closed with the store. Default: one of its own. */
  readonly pool?: PostgresPool
  /** The schema of the tables, which are created if they are missing. Default `hookloop`. */
  readonly schema?: string
  /** How long a lock stays in force after its owner last renewed it, if the owner cannot be checked. Default 30,000. */
  readonly leaseMs?: number
}

/** A connection that answers nothing for as long as a lease, and at most this long, is broken: packets may get lost without an error. */
const MAX_QUERY_MS = 60_000
const POLL_MS = 50
/** Texts differ by the number of values in them. Planning them again and again would cost the database more than all else. */
const MAX_PREPARED = 100
/** What Postgres says if a connection has no such statement, or one already. */
const NOT_PREPARED: ReadonlySet<unknown> = new Set(['26000', '42P05'])

/**
 * A session store in a Postgres database, for any number of processes and machines. The clock of the database decides
 * whether a lease has expired.
 *
 * @example
 * const store = postgresStore({ connectionString: process.env.DATABASE_URL })
 * const agent = createAgent({ model, store })
 */
export function postgresStore(options: PostgresStoreOptions): SessionStore {
  checkOptions('postgresStore', options, ['connectionString', 'pool', 'schema', 'leaseMs'])
  const leaseMs = checkLease(options.leaseMs)
  const schema = schemaName(options.schema ?? 'hookloop')
  if ((options.connectionString === undefined) === (options.pool === undefined))
    throw new AgentError('AGENT_INVALID_OPTION', 'postgresStore needs a connectionString or a pool.')
  const timeoutMs = Math.min(Math.max(leaseMs, 5_000), MAX_QUERY_MS)
  const noAnswer = (): Error => new Error(`no answer within ${timeoutMs} ms`)
  let connecting: Promise<Pool> | undefined
  const connect = (): Promise<Pool> =>
    (connecting ??= connectTo(options).catch((error: unknown) => {
      connecting = undefined // the next call tries again
      throw error
    }))
  const prepared = new Map<string, string>()
  let canPrepare = options.pool === undefined
  /** A prepared statement has a name that only its text has: behind a pooler, connections have those of other processes. */
  const nameOf = (text: string): string | undefined => {
    if (canPrepare && !prepared.has(text) && prepared.size < MAX_PREPARED)
      prepared.set(text, hashText(text).slice(0, 32))
    return canPrepare ? prepared.get(text) : undefined
  }
  const send = async (pool: Pool, text: string, values: unknown[]): Promise<readonly unknown[]> => {
    // A pool of the application may have no timeout: a database that hangs must not hang the run.
    if (options.pool !== undefined) return (await withTimeout(pool.query(text, values), timeoutMs, noAnswer)).rows
    const name = nameOf(text)
    try {
      return (await pool.query({ text, values, name, query_timeout: timeoutMs })).rows
    } catch (error) {
      if (name === undefined || !NOT_PREPARED.has((error as { code?: unknown }).code)) throw error
      canPrepare = false // behind this pooler; the statement was not executed
      return send(pool, text, values)
    }
  }
  const query = async (statement: Sql): Promise<readonly unknown[]> => {
    const pool = await connect()
    let n = 0
    const text = statement.text.replaceAll('?', () => `$${++n}`)
    try {
      return await send(pool, text, [...statement.values])
    } catch (error) {
      throw storeFailed('The database cannot be read or written', error)
    }
  }
  const table = (name: string): Sql => ({ text: `${schema}.${name}`, values: [] })
  return sqlStore(
    {
      names: {
        sessions: table('sessions'),
        lines: table('lines'),
        pieces: table('pieces'),
        shared: table('shared'),
        now: sql`CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS double precision)`,
      },
      pollMs: POLL_MS,
      query,
      queryAll: (first, others) => query(inOne(first, others)),
      async close() {
        const pool = await connecting?.catch(() => undefined)
        if (options.pool === undefined) await pool?.end?.()
      },
    },
    leaseMs,
  )
}

/** One statement is atomic on any connection and through any pooler, and takes one round trip. */
function inOne(first: Sql, others: readonly Sql[]): Sql {
  const steps = others.map((each, i) => sql`${{ text: `step${i}`, values: [] }} AS (${each})`)
  return sql`WITH ${join([sql`owned AS (${first})`, ...steps])} SELECT key FROM owned`
}
