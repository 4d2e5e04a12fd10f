import { AgentError } from '../../errors.ts'
import { MAX_LEASE_MS } from './lock-owner.ts'
import { sessionTooNew } from './store.ts'

/** What is needed of a pool of `pg`, or of anything that speaks like one. */
export type PostgresPool = {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

const VERSION = 1
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/
/** Any number that nobody else is likely to lock: "Hkl1". */
const SETUP_LOCK = 0x486b6c31

export type Queries = ReturnType<typeof queriesFor>

/** Every query there is. Each is one statement, so it happens as a whole, on any connection, through any pooler. */
export function queriesFor(schema: string) {
  const [sessions, lines] = [`${checked(schema)}.sessions`, `${checked(schema)}.lines`]
  const silent = `abs(extract(epoch FROM clock_timestamp() - renewed_at)) * 1000 > least(lease_ms, ${MAX_LEASE_MS})`
  return {
    create: `
      INSERT INTO ${sessions} (id, lease_ms) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`,
    find: `
      SELECT key, id, epoch, owner, head, length FROM ${sessions} WHERE id = $1`,
    lines: `
      SELECT n, line FROM ${lines} WHERE session = $1 AND n < $2 ORDER BY n`,
    list: `
      SELECT id, head, (extract(epoch FROM updated_at) * 1000)::float8 AS updated_at
      FROM ${sessions} ORDER BY sessions.updated_at DESC`,
    lock: `
      UPDATE ${sessions} SET epoch = epoch + 1, owner = $4, renewed_at = clock_timestamp(), lease_ms = $5
      WHERE key = $1 AND epoch = $2 AND ($3::bool OR owner IS NULL OR ${silent})
      RETURNING key, id, epoch, length`,
    // Nothing is inserted unless the row has this epoch. A lock waits for the row, and sees it as it is afterwards.
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
    release: `
      UPDATE ${sessions} SET owner = NULL WHERE key = $1 AND epoch = $2`,
    delete: `
      WITH gone AS (
        DELETE FROM ${sessions} WHERE key = $1 AND epoch = $2 AND ($3::bool OR owner IS NULL OR ${silent}) RETURNING key
      ), cleared AS (
        DELETE FROM ${lines} USING gone WHERE session = gone.key
      )
      SELECT key FROM gone`,
  }
}

/** Makes the tables if they are not there; several processes may do so at once. */
export async function createTables(pool: PostgresPool, schema: string): Promise<void> {
  const name = checked(schema)
  const [found] = (await pool.query('SELECT to_regclass($1) IS NOT NULL AS there', [`${name}.store`])).rows
  // Not asked for if it is there, because a user of the tables may not be allowed to make any.
  if (!(found as { there: boolean }).there) await pool.query(tables(name))
  const [row] = (await pool.query(`SELECT max(version) AS version FROM ${name}.store`)).rows
  const { version } = row as { version: number | null }
  if (version === VERSION) return
  if (version !== null && version > VERSION) throw sessionTooNew(schema, version, VERSION)
  throw new AgentError('SESSION_CORRUPT', `The tables in "${schema}" are not those of a session store.`, {
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

/** The one name that is part of the queries, as an identifier and nothing else. */
function checked(schema: string): string {
  if (SCHEMA.test(schema)) return `"${schema}"`
  throw new AgentError('AGENT_INVALID_OPTION', 'A schema is named by up to 63 small letters, digits and _.', {
    value: schema,
  })
}
