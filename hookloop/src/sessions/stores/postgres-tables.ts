import { AgentError } from '../../errors.ts'
import { otherVersion } from './store.ts'

/** What the store needs of a connection pool: a `Pool` of the package `pg`, or anything with the same method. */
export type PostgresPool = {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** The version of the tables. */
const VERSION = 1
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/
/** The key of an advisory lock, unlikely to be used by others: "Hkl1" in ASCII. */
const SETUP_LOCK = 0x486b6c31

/** Creates the tables if they are missing. Of several processes that do so at the same time, one does it and the others wait. */
export async function createTables(pool: PostgresPool, schema: string): Promise<void> {
  const name = schemaName(schema)
  // Only if needed: the database user may not have the right to create tables.
  const [found] = (await pool.query('SELECT to_regclass($1) IS NOT NULL AS there', [`${name}.store`])).rows
  if (!(found as { there: boolean }).there) await pool.query(tables(name))
  const [row] = (await pool.query(`SELECT version FROM ${name}.store`)).rows as { readonly version: number }[]
  if (row === undefined)
    throw new AgentError('SESSION_CORRUPT', `The tables in the schema "${schema}" are not those of a session store.`)
  if (row.version !== VERSION) throw otherVersion(schema, row.version, VERSION)
}

/** The schema is the only name that becomes part of a query, so it must be a plain identifier. */
export function schemaName(schema: string): string {
  if (SCHEMA.test(schema)) return `"${schema}"`
  throw new AgentError('AGENT_INVALID_OPTION', 'The schema must be up to 63 lower case letters, digits and _.', {
    value: schema,
  })
}

/** Times and numbers of pieces are floating point numbers, because the driver returns large integers as text. */
function tables(schema: string): string {
  return `
    SELECT pg_advisory_xact_lock(${SETUP_LOCK});
    CREATE SCHEMA IF NOT EXISTS ${schema};
    CREATE TABLE IF NOT EXISTS ${schema}.sessions (
      key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      id text COLLATE "C" NOT NULL UNIQUE,
      epoch integer NOT NULL DEFAULT 0,
      owner text,
      locked_at double precision NOT NULL DEFAULT 0,
      expires_at double precision NOT NULL DEFAULT 0,
      head text NOT NULL DEFAULT '{}',
      length integer NOT NULL DEFAULT 0,
      updated_at double precision NOT NULL,
      status text,
      agent text,
      user_name text,
      stop text
    );
    CREATE INDEX IF NOT EXISTS sessions_by_time ON ${schema}.sessions (updated_at DESC, id);
    CREATE INDEX IF NOT EXISTS sessions_by_status ON ${schema}.sessions (status, updated_at DESC);
    CREATE INDEX IF NOT EXISTS sessions_by_agent ON ${schema}.sessions (agent, updated_at DESC);
    CREATE INDEX IF NOT EXISTS sessions_by_user ON ${schema}.sessions (user_name, updated_at DESC);
    CREATE TABLE IF NOT EXISTS ${schema}.lines (
      session bigint NOT NULL,
      n integer NOT NULL,
      content text NOT NULL,
      PRIMARY KEY (session, n)
    );
    CREATE TABLE IF NOT EXISTS ${schema}.pieces (
      session bigint NOT NULL,
      seq double precision NOT NULL,
      content text NOT NULL,
      PRIMARY KEY (session, seq)
    );
    CREATE TABLE IF NOT EXISTS ${schema}.shared (
      name text PRIMARY KEY,
      value text NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}.store (version integer NOT NULL);
    INSERT INTO ${schema}.store SELECT ${VERSION} WHERE NOT EXISTS (SELECT FROM ${schema}.store);
  `
}
