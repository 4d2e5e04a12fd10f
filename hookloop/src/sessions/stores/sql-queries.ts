import { MAX_LEASE_MS } from './lock-owner.ts'
import { storedStatuses, type Facets, type Position } from './list-sessions.ts'
import { join, list, pairs, sql, type Sql, type SqlValue } from './sql.ts'
import { isOpenStatus, type AppendOptions, type ReadOptions, type SessionFilter } from './store.ts'

// All queries, in SQL that SQLite and Postgres share. There are four tables:
//
//   sessions  key, id, epoch, owner, locked_at, expires_at, head, length, updated_at, status, agent, user_name, stop
//   lines     session, n, content     lines of one append from line n on, separated by newlines
//   pieces    session, seq, content
//   shared    name, value

/** A session as `find` returns it. Postgres returns keys as text. */
export type SessionRow = {
  readonly key: string | number
  readonly id: string
  readonly epoch: number
  readonly owner: string | null
  readonly locked_at: number
  readonly head: string
  readonly length: number
  readonly updated_at: number
  readonly stop: string | null
  /** Whether it has an owner whose lease has not expired. SQLite has no booleans. */
  readonly held: boolean | number
}

/** What identifies a lock. */
export type LockKey = Pick<SessionRow, 'key' | 'epoch'>

type Append = {
  readonly lock: LockKey
  /** The number of lines before. */
  readonly next: number
  readonly lines: readonly string[]
  readonly options: AppendOptions
}

export type Names = { readonly [name in 'sessions' | 'lines' | 'pieces' | 'shared' | 'now']: Sql }

/** What a store needs of a database. A driver that waits for nothing returns no promises. */
export type SqlDatabase = {
  readonly names: Names
  /** How often watchers look for what other processes have written. */
  readonly pollMs: number
  query(statement: Sql): Rows | Promise<Rows>
  /** Runs a statement and, if it returns a row, others in the same transaction. They see the row as the table `owned`. */
  queryAll(first: Sql, others: readonly Sql[]): Rows | Promise<Rows>
  close(): void | Promise<void>
}

/** Each query knows which columns it selects. */
type Rows = readonly unknown[]

export type Queries = ReturnType<typeof queriesFor>

/** A row of lines is not longer, unless a single line is. */
const ROW_CHARS = 32_768
const MAX_LINE = 2 ** 31 - 1
const isOpen = sql`status IN ('running', 'suspended')`

export function queriesFor({ sessions, lines, pieces, shared, now }: Names) {
  // A time far in the future has expired as well.
  const held = sql`(owner IS NOT NULL AND expires_at BETWEEN ${now} AND ${now} + ${sql`${MAX_LEASE_MS}`})`
  const listed = sql`key, id, owner, locked_at, head, updated_at, stop, ${held} AS held`
  const columns = sql`${listed}, epoch, length`
  const isOwn = ({ key, epoch }: LockKey): Sql => sql`key = ${key} AND epoch = ${epoch}`
  /** Whether a session is still as it was found, and no process has it locked. The owner that was found may be dead. */
  const isFree = (found: LockKey, dead: string | null): Sql =>
    sql`${isOwn(found)} AND (owner IS NULL OR owner = ${dead} OR NOT ${held})`
  return {
    find: (id: string) => sql`SELECT ${columns} FROM ${sessions} WHERE id = ${id}`,
    create: (id: string) =>
      sql`INSERT INTO ${sessions} (id, updated_at) VALUES (${id}, ${now}) ON CONFLICT (id) DO NOTHING`,
    /** The first process to increment the epoch has the lock. A request to stop stays for the next owner if the run is open. */
    lock: (found: LockKey, by: { readonly owner: string; readonly leaseMs: number; readonly dead: string | null }) =>
      sql`UPDATE ${sessions} SET epoch = epoch + 1, owner = ${by.owner}, locked_at = ${now},
        expires_at = ${now} + ${by.leaseMs}, stop = CASE WHEN ${isOpen} THEN stop END
      WHERE ${isFree(found, by.dead)} RETURNING ${columns}`,
    unlock: (lock: LockKey, isTimeDue: boolean) =>
      sql`UPDATE ${sessions} SET owner = NULL${isTimeDue ? sql`, updated_at = ${now}` : sql``} WHERE ${isOwn(lock)}`,
    /** Renews the leases that are due, and returns those sessions and the ones to stop. */
    renew: (keys: readonly SqlValue[], by: { readonly owner: string; readonly leaseMs: number }) =>
      sql`UPDATE ${sessions} SET expires_at = ${now} + ${by.leaseMs}
      WHERE key IN (${list(keys)}) AND owner = ${by.owner}
        AND (stop IS NOT NULL OR expires_at < ${now} + ${(2 * by.leaseMs) / 3}) RETURNING key, stop`,
    requestStop: (id: string, request: string, dead: string | null) =>
      sql`UPDATE ${sessions} SET stop = coalesce(stop, ${request})
      WHERE id = ${id} AND (${isOpen} OR (${held} AND owner <> coalesce(${dead}, ''))) RETURNING key`,
    /** The session is written first: without it, nothing is. What is in indexes only if it is due, because that costs most. */
    append: (
      { lock, next, lines: newLines, options: { head, pieces: newPieces = [], startsTurn = false } }: Append,
      due: { readonly time: boolean; readonly facets: Facets | undefined },
    ): readonly [first: Sql, others: readonly Sql[]] => {
      const changes = [sql`length = length + ${newLines.length}`]
      if (head !== undefined) changes.push(sql`head = ${JSON.stringify(head)}`)
      if (due.time) changes.push(sql`updated_at = ${now}`)
      if (due.facets !== undefined) {
        const { status, agent, user } = due.facets
        changes.push(sql`status = ${status}, agent = ${agent}, user_name = ${user}`)
      }
      if (head !== undefined && !isOpenStatus(head['status'])) changes.push(sql`stop = NULL`)
      const others: Sql[] = []
      if (newLines.length > 0)
        others.push(sql`INSERT INTO ${lines} (session, n, content) SELECT key, CAST(column1 AS integer), column2
          FROM owned, (VALUES ${pairs(toRows(next, newLines))}) AS new`)
      if (startsTurn) others.push(sql`DELETE FROM ${pieces} WHERE session IN (SELECT key FROM owned)`)
      if (newPieces.length > 0)
        others.push(sql`INSERT INTO ${pieces} (session, seq, content) SELECT key, CAST(column1 AS double precision), column2
          FROM owned, (VALUES ${pairs(newPieces.map(({ seq, text }) => [seq, text]))}) AS new`)
      const first = sql`UPDATE ${sessions} SET ${join(changes)} WHERE ${isOwn(lock)} AND length = ${next} RETURNING key`
      return [first, others]
    },
    /** In one statement, so that the parts fit together: the session, rows with the lines between two numbers, and pieces. */
    read: (id: string, { after = -1, before = MAX_LINE, pieces: range }: ReadOptions) => sql`
      WITH found AS (
        SELECT key, head, length, (
          SELECT max(n) FROM ${lines} WHERE session = key AND n <= ${Math.min(after + 1, MAX_LINE)}
        ) AS first FROM ${sessions} WHERE id = ${id}
      )
      SELECT 0 AS part, key, length AS n, head AS content FROM found
      UNION ALL
      SELECT 1, key, n, content FROM found, ${lines}
      WHERE session = key AND n >= coalesce(first, 0) AND n < ${Math.min(before, MAX_LINE)}
      ${
        range === undefined
          ? sql``
          : sql`UNION ALL
      SELECT 2, key, seq, content FROM found, ${pieces}
      WHERE session = key AND seq > ${range.after} AND seq < ${range.before}`
      }
      ORDER BY part, n`,
    // Without the numbers that a damaged row of SQLite may have and JavaScript has not: other sessions must stay usable.
    list: (filter: SessionFilter, after: Position | undefined, limit: number | undefined) => sql`
      SELECT ${listed} FROM ${sessions} WHERE ${conditionOf(filter)} ${after === undefined ? sql`` : isBehind(after)}
      ORDER BY updated_at DESC, id ${limit === undefined ? sql`` : sql`LIMIT ${limit}`}`,
    delete: (found: LockKey, dead: string | null, before: number): readonly [first: Sql, others: readonly Sql[]] => [
      sql`DELETE FROM ${sessions} WHERE ${isFree(found, dead)} AND updated_at < ${before} RETURNING key`,
      [lines, pieces].map((table) => sql`DELETE FROM ${table} WHERE session IN (SELECT key FROM owned)`),
    ],
    versions: (ids: readonly string[]) => sql`
      SELECT id, key, length, updated_at, (SELECT max(seq) FROM ${pieces} WHERE session = key) AS seq
      FROM ${sessions} WHERE id IN (${list(ids)})`,
    value: (name: string) =>
      sql`SELECT value, ${now} AS now FROM (SELECT 1) AS clock LEFT JOIN ${shared} ON name = ${name}`,
    /** Only if no other process has changed it since. */
    setValue: (name: string, value: string, before: string | null) =>
      sql`INSERT INTO ${shared} AS known (name, value) VALUES (${name}, ${value})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE known.value = ${before} RETURNING name`,
  }
}

function conditionOf(filter: SessionFilter): Sql {
  const statuses = storedStatuses(filter)
  const conditions = [sql`1 = 1`]
  if (filter.agent !== undefined) conditions.push(sql`agent = ${filter.agent}`)
  if (filter.user !== undefined) conditions.push(sql`user_name = ${filter.user}`)
  if (statuses !== undefined) conditions.push(statuses.length === 0 ? sql`1 = 0` : sql`status IN (${list(statuses)})`)
  return join(conditions, ' AND ')
}

function isBehind({ id, updatedAt }: Position): Sql {
  return sql`AND (updated_at < ${updatedAt} OR (updated_at = ${updatedAt} AND id > ${id}))`
}

/** Each row has the number of its first line. */
function toRows(first: number, lines: readonly string[]): readonly [n: number, text: string][] {
  const rows: [n: number, text: string][] = []
  for (const [i, line] of lines.entries()) {
    const last = rows.at(-1)
    if (last === undefined || last[1].length + line.length > ROW_CHARS) rows.push([first + i, line])
    else last[1] += `\n${line}`
  }
  return rows
}
