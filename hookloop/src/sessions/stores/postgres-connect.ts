import { AgentError, messageOf } from '../../errors.ts'
import { createTables, type PostgresPool } from './postgres-tables.ts'
import { storeFailed } from './store.ts'

export type Pool = PostgresPool & {
  /** Only of a pool of the package `pg`. After the timeout, the connection is closed. */
  query(query: {
    readonly text: string
    readonly values: unknown[]
    readonly name: string | undefined
    readonly query_timeout: number
  }): ReturnType<PostgresPool['query']>
  end?(): Promise<void>
}

/** Connects to the database, and creates the tables if they are missing. */
export async function connectTo(options: {
  readonly connectionString?: string
  readonly pool?: PostgresPool
  readonly schema?: string
}): Promise<Pool> {
  const pool = (options.pool as Pool | undefined) ?? (await ownPool(options.connectionString!))
  ignoreIdleErrors(pool)
  try {
    await createTables(pool, options.schema ?? 'hookloop')
    return pool
  } catch (error) {
    if (options.pool === undefined) await pool.end?.()
    throw cannotUse('The database', options.connectionString, error)
  }
}

/** Why something in a database cannot be used, with its address and without the password. */
export function cannotUse(what: string, connectionString: string | undefined, error: unknown): AgentError {
  // Without the error of the driver, which may contain the password.
  if ((error as NodeJS.ErrnoException).code === 'ERR_INVALID_URL') return badAddress()
  return storeFailed(`${what}${placeOf(connectionString)} cannot be used`, reasonOf(error))
}

/** A pool replaces a connection that breaks while it is idle. Without a listener, its error would end the process. */
function ignoreIdleErrors(pool: PostgresPool & { readonly on?: unknown; readonly listenerCount?: unknown }): void {
  const { on, listenerCount } = pool
  if (typeof on !== 'function' || typeof listenerCount !== 'function') return
  if (listenerCount.call(pool, 'error') === 0) on.call(pool, 'error', () => undefined)
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
  return new pg.default.Pool({
    connectionString,
    allowExitOnIdle: true,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  })
}

function badAddress(): AgentError {
  const message =
    'The address of the database is not a URL. It must be like postgres://user:password@host:5432/database, with special ' +
    'characters in the password encoded, such as %40 for @.'
  return new AgentError('STORE_FAILED', message)
}

/** Where the database is, without the user and the password. */
function placeOf(connectionString: string | undefined): string {
  if (connectionString === undefined || !URL.canParse(connectionString)) return ''
  const { host, pathname, searchParams } = new URL(connectionString)
  const at = `${searchParams.get('host') ?? host}${pathname}`
  return at === '' ? ', whose address names no host,' : ` at ${at}`
}

/** A host name with several addresses fails with an error for each, and no message. */
function reasonOf(error: unknown): unknown {
  if (!(error instanceof AggregateError) || error.message !== '') return error
  const [first] = error.errors as readonly unknown[]
  return Object.assign(new Error(error.errors.map(messageOf).join(', ')), {
    code: (first as NodeJS.ErrnoException | undefined)?.code,
  })
}
