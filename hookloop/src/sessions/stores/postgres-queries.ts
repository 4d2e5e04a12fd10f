import { AgentError } from '../../errors.ts'
import { MAX_LEASE_MS } from './lock-owner.ts'
import { sessionTooNew } from './store.ts'

/** What the store needs of a connection pool: a `Pool` of the package `pg`, or anything with the same method. */
export type PostgresPool = {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** The version of the tables. They are changed forward only, by one process at a time, when a store of a newer version is opened. */
const VERSION = 6
/** The oldest version that can use these tables: during a deploy, processes of both versions run. */
const USABLE_SINCE = 6
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/
/** The key of an advisory lock, unlikely to be used by others: "Hkl1" in ASCII. */
const SETUP_LOCK = 0x486b6c31

export type Queries = ReturnType<typeof queriesFor>

/** All queries. Each is one statement, so it is atomic on any connection and through any pooler. */
export function queriesFor(schema: string) {
  const [sessions, lines, shared, pieces] = ['sessions', 'lines', 'shared', 'pieces'].map(
    (table) => `${checked(schema)}.${table}`,
  )
  const nowMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
  const expired = `abs(extract(epoch FROM clock_timestamp() - renewed_at)) * 1000 > least(lease_ms, ${MAX_LEASE_MS})`
  const isOpen = (status: string): string => `${status} IN ('running', 'suspended')`
  // A parameter that is null does not filter.
  const filter = `($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_name = $2)
        AND ($3::text[] IS NULL OR status = ANY ($3))`
  // Nothing is inserted unless the row has this epoch. A concurrent lock waits for the row and then sees the new length.
  const append = `
      WITH locked AS (
        UPDATE ${sessions} SET length = length + cardinality($4::text[]), head = coalesce($5, head),
          status = CASE WHEN $5 IS NULL THEN status ELSE ($6::text[])[1] END,
          agent = CASE WHEN $5 IS NULL THEN agent ELSE ($6::text[])[2] END,
          user_name = CASE WHEN $5 IS NULL THEN user_name ELSE ($6::text[])[3] END,
          stop = CASE WHEN $5 IS NULL OR ${isOpen('($6::text[])[1]')} THEN stop END,
          updated_at = clock_timestamp(), updated_ms = ${nowMs}, renewed_at = clock_timestamp()
        WHERE key = $1 AND epoch = $2 AND length = $3 RETURNING key
      ), stored AS (
        INSERT INTO ${lines} (session, n, line)
        SELECT locked.key, $3::bigint + new.n - 1, new.line
        FROM locked, unnest($4::text[]) WITH ORDINALITY AS new (line, n)
      )`
  // Pieces are added. The parameters are their numbers, their texts, and whether a turn starts.
  const withPieces = `, ended AS (
        DELETE FROM ${pieces} USING locked WHERE $9::bool AND session = locked.key
      ), added AS (
        INSERT INTO ${pieces} (session, seq, text)
        SELECT locked.key, new.seq, new.text FROM locked, unnest($7::bigint[], $8::text[]) AS new (seq, text)
      )`
  return {
    create: `
      INSERT INTO ${sessions} (id, lease_ms) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`,
    find: `
      SELECT key, id, epoch, owner, head, length, updated_ms::float8 AS updated_ms FROM ${sessions} WHERE id = $1`,
    // In one statement, so that the parts fit together: the session, its lines and its pieces, each between two numbers.
    read: `
      WITH found AS (SELECT key, head, length FROM ${sessions} WHERE id = $1)
      SELECT 0 AS part, key, length AS n, head AS line FROM found
      UNION ALL
      SELECT 1, session, n, line FROM ${lines}, found WHERE session = key AND n > $2 AND n < $3
      UNION ALL
      SELECT 2, session, seq, text FROM ${pieces}, found WHERE session = key AND seq > $4 AND seq < $5
      ORDER BY part, n`,
    count: `
      SELECT count(*) AS n FROM ${sessions} WHERE ${filter}`,
    locks: `
      SELECT owner FROM ${sessions} WHERE ${filter} AND owner IS NOT NULL AND NOT ${expired}`,
    list: `
      SELECT id, head, owner, ${expired} AS expired, CASE WHEN stop_epoch = epoch THEN stop END AS stop,
        updated_ms::float8 AS updated_ms FROM ${sessions}
      WHERE ${filter}
        AND ($4::float8 IS NULL OR updated_ms < $4 OR (updated_ms = $4 AND id COLLATE "C" > $5))
      ORDER BY sessions.updated_ms DESC, id COLLATE "C" LIMIT $6`,
    lock: `
      UPDATE ${sessions} SET epoch = epoch + 1, owner = $4, renewed_at = clock_timestamp(), lease_ms = $5,
        stop = CASE WHEN stop_epoch = epoch AND ${isOpen('status')} THEN stop END, stop_epoch = epoch + 1
      WHERE key = $1 AND epoch = $2 AND ($3::bool OR owner IS NULL OR ${expired})
      RETURNING key, id, epoch, length, head, stop`,
    append: `${append} SELECT key FROM locked`,
    appendPieces: `${append} ${withPieces} SELECT key FROM locked`,
    versions: `
      SELECT id, key, length, (SELECT max(seq) FROM ${pieces} WHERE session = key) AS n FROM ${sessions} WHERE id = ANY ($1)`,
    notify: `
      SELECT pg_notify($1, id) FROM unnest($2::text[]) AS id`,
    // A request counts under the lock that it was made under, and the next owner of the lock takes it over if the run is open.
    requestStop: `
      UPDATE ${sessions} SET stop = CASE WHEN stop_epoch = epoch THEN coalesce(stop, $2) ELSE $2 END, stop_epoch = epoch
      WHERE id = $1 AND (${isOpen('status')} OR ($3::bool AND owner IS NOT NULL AND NOT ${expired})) RETURNING key`,
    stops: `
      SELECT id, stop FROM ${sessions} WHERE id = ANY ($1) AND stop IS NOT NULL AND stop_epoch = epoch`,
    getValue: `
      SELECT value AS line, version AS n, ${nowMs}::float8 AS now_ms
      FROM (SELECT) AS clock LEFT JOIN ${shared} ON name = $1`,
    // Only if no other process has changed it since. A value that is there conflicts with the insert, whatever $3 is.
    setValue: `
      INSERT INTO ${shared} AS known (name, value, version) VALUES ($1, $2, 1)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = known.version + 1 WHERE known.version = $3::bigint
      RETURNING version AS n`,
    renew: `
      UPDATE ${sessions} SET renewed_at = clock_timestamp() WHERE key = $1 AND epoch = $2`,
    unlock: `
      UPDATE ${sessions} SET owner = NULL WHERE key = $1 AND epoch = $2`,
    delete: `
      WITH gone AS (
        DELETE FROM ${sessions} WHERE key = $1 AND epoch = $2 AND ($3::bool OR owner IS NULL OR ${expired})
          AND updated_ms < $4 RETURNING key
      ), cleared AS (
        DELETE FROM ${lines} USING gone WHERE session = gone.key
      ), forgotten AS (
        DELETE FROM ${pieces} USING gone WHERE session = gone.key
      )
      SELECT key FROM gone`,
  }
}

/** How long to wait for others. A table that is waited for blocks all later queries of it, so that wait is short. */
export type LockWaits = { readonly forSetupMs: number; readonly forTableMs: number }

const lockWaits: LockWaits = { forSetupMs: 30_000, forTableMs: 5_000 }

/**
 * Creates the tables, or adds what an older version does not have. Of several processes that do so at the same time, one does it
 * and the others wait. Rejects if it would have to wait for longer than `waits`, with the connections that hold the locks.
 */
export async function createTables(pool: PostgresPool, schema: string, waits = lockWaits): Promise<void> {
  const name = checked(schema)
  try {
    await createOrChange(pool, { schema, name, waits })
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== LOCK_NOT_AVAILABLE) throw error
    throw new Error(await lockedMessage(pool, schema, name), { cause: error })
  }
}

async function createOrChange(
  pool: PostgresPool,
  { schema, name, waits }: { readonly schema: string; readonly name: string; readonly waits: LockWaits },
): Promise<void> {
  // Only if needed: the database user may not have the right to create tables.
  if (!(await hasTable(pool, `${name}.store`))) await pool.query(tables(name, waits))
  const known = await versionsOf(pool, name, waits)
  const isOld = known.version !== null && known.version > 0 && known.version < VERSION
  if (isOld) await pool.query(tables(name, waits))
  const { version, usableSince } = isOld ? await versionsOf(pool, name, waits) : known
  if (version === VERSION) return
  if (version === null || version < VERSION)
    throw new AgentError('SESSION_CORRUPT', `The tables in the schema "${schema}" are not those of a session store.`, {
      value: version,
    })
  if (usableSince === null || usableSince > VERSION) throw sessionTooNew(schema, version, VERSION)
}

async function hasTable(pool: PostgresPool, name: string): Promise<boolean> {
  const [found] = (await pool.query('SELECT to_regclass($1) IS NOT NULL AS there', [name])).rows
  return (found as { there: boolean }).there
}

type Versions = { readonly version: number | null; readonly usableSince: number | null }

async function versionsOf(pool: PostgresPool, schema: string, { forSetupMs }: LockWaits): Promise<Versions> {
  // Through JSON, because older tables do not have the second column.
  const text = `SELECT max(version) AS version, max((to_jsonb(known)->>'usable_since')::integer) AS "usableSince" FROM ${schema}.store AS known`
  const results = await pool.query(`${waitAtMost(forSetupMs)} ${text}`)
  return [results].flat().at(-1)!.rows[0] as Versions // `pg` returns one result for each statement
}

const LOCK_NOT_AVAILABLE = '55P03'

/** For the statements after it that are sent with it. */
function waitAtMost(ms: number): string {
  return `SELECT set_config('lock_timeout', '${ms}', true);`
}

/** Who holds locks on the tables, the oldest transaction first: it is the one that others wait for. */
async function lockedMessage(pool: PostgresPool, schema: string, name: string): Promise<string> {
  const text = `
    SELECT DISTINCT concat_ws(', ', 'process ' || pid, nullif(application_name, ''), 'at ' || host(client_addr), state,
      'since ' || xact_start) AS line, xact_start
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE granted AND pid <> pg_backend_pid() AND datname = current_database()
      AND ((locktype = 'advisory' AND classid = 0 AND objid = ${SETUP_LOCK})
        OR relation IN (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace($1)))
    ORDER BY xact_start LIMIT 3`
  const holders = (await pool.query(text, [name])).rows.map((row) => (row as { readonly line: string }).line)
  const by = ['another connection', ...(holders.length === 0 ? [] : [holders.join('; ')])].join(': ')
  return (
    `the tables in the schema "${schema}" have to be created or checked, and are locked by ${by}. ` +
    'Start again when it has ended, or end it with SELECT pg_terminate_backend(process)'
  )
}

/** Also adds what an older version does not have. */
function tables(schema: string, { forSetupMs, forTableMs }: LockWaits): string {
  return `
    ${waitAtMost(forSetupMs)}
    SELECT pg_advisory_xact_lock(${SETUP_LOCK});
    ${waitAtMost(forTableMs)}
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
    CREATE TABLE IF NOT EXISTS ${schema}.pieces (
      session bigint NOT NULL,
      seq bigint NOT NULL,
      text text NOT NULL,
      PRIMARY KEY (session, seq)
    );
    DROP TABLE IF EXISTS ${schema}.events;
    ALTER TABLE ${schema}.sessions
      ADD COLUMN IF NOT EXISTS status text, ADD COLUMN IF NOT EXISTS agent text, ADD COLUMN IF NOT EXISTS user_name text,
      ADD COLUMN IF NOT EXISTS updated_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
      ADD COLUMN IF NOT EXISTS stop text, ADD COLUMN IF NOT EXISTS stop_epoch bigint;
    CREATE INDEX IF NOT EXISTS sessions_by_time ON ${schema}.sessions (updated_ms DESC, id COLLATE "C");
    CREATE INDEX IF NOT EXISTS sessions_by_status ON ${schema}.sessions (status, updated_ms DESC);
    CREATE INDEX IF NOT EXISTS sessions_by_agent ON ${schema}.sessions (agent, updated_ms DESC);
    CREATE INDEX IF NOT EXISTS sessions_by_user ON ${schema}.sessions (user_name, updated_ms DESC);
    CREATE INDEX IF NOT EXISTS sessions_to_stop ON ${schema}.sessions (id) WHERE stop IS NOT NULL;
    CREATE TABLE IF NOT EXISTS ${schema}.shared (
      name text PRIMARY KEY,
      value text NOT NULL,
      version bigint NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}.store (version integer NOT NULL);
    ALTER TABLE ${schema}.store ADD COLUMN IF NOT EXISTS usable_since integer NOT NULL DEFAULT ${USABLE_SINCE};
    INSERT INTO ${schema}.store SELECT ${VERSION}, ${USABLE_SINCE} WHERE NOT EXISTS (SELECT FROM ${schema}.store);
    UPDATE ${schema}.sessions SET updated_ms = (extract(epoch FROM updated_at) * 1000)::bigint,
      status = substring(head from '"status":"([a-z]+)"'), agent = substring(head from '"agent":"([^"\\\\]*)"')
      WHERE (SELECT max(version) FROM ${schema}.store) < 3;
    UPDATE ${schema}.store SET version = ${VERSION}, usable_since = ${USABLE_SINCE} WHERE version < ${VERSION};
  `
}

/** The schema is the only name that becomes part of a query, so it must be a plain identifier. */
function checked(schema: string): string {
  if (SCHEMA.test(schema)) return `"${schema}"`
  throw new AgentError('AGENT_INVALID_OPTION', 'The schema must be up to 63 lower case letters, digits and _.', {
    value: schema,
  })
}
