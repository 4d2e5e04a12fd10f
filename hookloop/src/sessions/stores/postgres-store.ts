import { checkOptions } from '../../values/check-options.ts'
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
  const query = async (statement: Sql): Promise<readonly unknown[]> => {
    const pool = await connect()
    let n = 0
    const text = statement.text.replaceAll('?', () => `$${++n}`)
    const values = [...statement.values]
    try {
      // A pool of the application may have no timeout: a database that hangs must not hang the run.
      const { rows } = await (options.pool === undefined
        ? pool.query({ text, values, query_timeout: timeoutMs })
        : withTimeout(pool.query(text, values), timeoutMs, noAnswer))
      return rows
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
