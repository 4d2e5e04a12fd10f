import { AgentError } from '../../errors.ts'
import { MAX_LEASE_MS } from './lock-owner.ts'
import { sessionTooNew } from './store.ts'

/** What the store needs of a connection pool: a `Pool` of the package `pg`, or anything with the same method. */
export type PostgresPool = {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

const VERSION = 1
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/
/** The key of an advisory lock, unlikely to be used by others: "Hkl1" in ASCII. */
const SETUP_LOCK = 0x486b6c31

export type Queries = ReturnType<typeof queriesFor>

/** All queries. Each is one statement, so it is atomic on any connection and through any pooler. */
export function queriesFor(schema: string) {
  const [sessions, lines] = [`${checked(schema)}.sessions`, `${checked(schema)}.lines`]
  const expired = `abs(extract(epoch FROM clock_timestamp() - renewed_at)) * 1000 > least(lease_ms, ${MAX_LEASE_MS})`
  return {
    create: `
      INSERT INTO ${sessions} (id, lease_ms) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`,
    find: `
      SELECT key, id, epoch, owner, head, length FROM ${sessions} WHERE id = $1`,
    lines: `
      SELECT n, line FROM ${lines} WHERE session = $1 AND n < $2 ORDER BY n`,
    list: `
      SELECT id, head, owner, ${expired} AS expired, (extract(epoch FROM updated_at) * 1000)::float8 AS updated_at
      FROM ${sessions} ORDER BY sessions.updated_at DESC`,
    lock: `
      UPDATE ${sessions} SET epoch = epoch + 1, owner = $4, renewed_at = clock_timestamp(), lease_ms = $5
      WHERE key = $1 AND epoch = $2 AND ($3::bool OR owner IS NULL OR ${expired})
      RETURNING key, id, epoch, length`,
    // Nothing is inserted unless the row has this epoch. A concurrent lock waits for the row and then sees the new length.
    append: `
      WITH locked AS (
        UPDATE ${sessions} SET length = length + cardinality($4::text[]), head = coalesce($5, head),
          updated_at = clock_timestamp(), renewed_at = clock_timestamp()
        WHERE key = $1 AND epoch = $2 AND length = $3 RETURNING key
      ), stored AS (
        INSERT INTO ${lines} (session, n, line)
        SELECT locked.key, $3::bigint + new.n - 1, new.line
        FROM locked, unnest($4::text[]) WITH ORDINALITY AS new (line, n)
      )
      SELECT key FROM locked`,
    renew: `
      UPDATE ${sessions} SET renewed_at = clock_timestamp() WHERE key = $1 AND epoch = $2`,
    unlock: `
      UPDATE ${sessions} SET owner = NULL WHERE key = $1 AND epoch = $2`,
    delete: `
      WITH gone AS (
        DELETE FROM ${sessions} WHERE key = $1 AND epoch = $2 AND ($3::bool OR owner IS NULL OR ${expired}) RETURNING key
      ), cleared AS (
        DELETE FROM ${lines} USING gone WHERE session = gone.key
      )
      SELECT key FROM gone`,
  }
}

/** Creates the tables if they are missing. Several processes may do so at the same time. */
export async function createTables(pool: PostgresPool, schema: string): Promise<void> {
  const name = checked(schema)
  const [found] = (await pool.query('SELECT to_regclass($1) IS NOT NULL AS there', [`${name}.store`])).rows
  // Only if needed: the database user may not have the right to create tables.
  if (!(found as { there: boolean }).there) await pool.query(tables(name))
  const [row] = (await pool.query(`SELECT max(version) AS version FROM ${name}.store`)).rows
  const { version } = row as { version: number | null }
  if (version === VERSION) return
  if (version !== null && version > VERSION) throw sessionTooNew(schema, version, VERSION)
  throw new AgentError('SESSION_CORRUPT', `The tables in the schema "${schema}" are not those of a session store.`, {
    value: version,
  })
}

function tables(schema: string): string {
  return `
    SELECT pg_advisory_xact_lock(${SETUP_LOCK});
    CREATE SCHEMA IF NOT EXISTS ${schema};
    CREATE TABLE IF NOT EXISTS ${schema}.sessions (
      key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      id text NOT NULL UNIQUE,
      epoch bigint NOT NULL DEFAULT 0,
      owner text,
      renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      lease_ms bigint NOT NULL,
      head text NOT NULL DEFAULT '{}',
      length bigint NOT NULL DEFAULT 0,
      updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
    );
    CREATE TABLE IF NOT EXISTS ${schema}.lines (
      session bigint NOT NULL,
      n bigint NOT NULL,
      line text NOT NULL,
      PRIMARY KEY (session, n)
    );
    CREATE TABLE IF NOT EXISTS ${schema}.store (version integer NOT NULL);
    INSERT INTO ${schema}.store SELECT ${VERSION} WHERE NOT EXISTS (SELECT FROM ${schema}.store);
  `
}

/** The schema is the only name that becomes part of a query, so it must be a plain identifier. */
function checked(schema: string): string {
  if (SCHEMA.test(schema)) return `"${schema}"`
  throw new AgentError('AGENT_INVALID_OPTION', 'The schema must be up to 63 lower case letters, digits and _.', {
    value: schema,
  })
}
