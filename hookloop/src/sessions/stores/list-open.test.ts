import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import pg from 'pg'
import { startPostgres } from './postgres.fixture.ts'
import { postgresStore } from './postgres-store.ts'
import { sqliteStore } from './sqlite-store.ts'
import { queriesFor } from './sql-queries.ts'
import { sql, type Sql } from './sql.ts'
import type { SessionStore } from './store.ts'

const status = ['running', 'suspended', 'interrupted']

/** A session that waits, one that was interrupted and one that runs. */
async function openSessions(store: SessionStore): Promise<void> {
  for (const each of ['suspended', 'running', 'locked']) {
    const writer = await store.open(each, { create: true })
    await writer.append(['one'], { head: { status: each === 'locked' ? 'running' : each } })
    if (each !== 'locked') await writer.release()
  }
}

async function listed(store: SessionStore): Promise<readonly string[]> {
  return (await store.list({ status })).map(
    ({ id, head, lock }) => `${id} ${JSON.stringify(head['status'])} ${lock !== undefined}`,
  )
}

const expected = ['locked "running" true', 'running "interrupted" false', 'suspended "suspended" false']

test('SQLite finds sessions with an open run by an index, whatever number of others has ended', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-open-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 's.db')
  const store = sqliteStore(path)
  await openSessions(store)
  const database = new DatabaseSync(path)
  database.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
    INSERT INTO sessions (id, epoch, head, updated_at, status)
    SELECT 'ended ' || i, 1, '{"status":"completed"}', ${Date.now() + 1_000} + i, 'completed' FROM n`)
  const names = { sessions: sql`sessions`, lines: sql`lines`, pieces: sql`pieces`, shared: sql`shared`, now: sql`1` }
  const queries = queriesFor(names)
  const planOf = ({ text, values }: Sql): string => {
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values)
    return rows.map(({ detail }) => String(detail)).join('\n')
  }
  assert.deepEqual((await listed(store)).toSorted(), expected)
  const plan = planOf(queries.list({ status }, undefined, undefined))
  assert.match(plan, /SEARCH sessions USING INDEX sessions_by_status \(status=\?\)/)
  assert.doesNotMatch(plan, /SCAN sessions/)
  database.close()
  await store.close()
})

test('Postgres finds sessions with an open run by an index, whatever number of others has ended', async (t) => {
  const server = await startPostgres()
  t.after(() => server.stop())
  const pool = new pg.Pool({ connectionString: server.connectionString })
  const store = postgresStore({ pool })
  await openSessions(store)
  await pool.query(`
    INSERT INTO hookloop.sessions (id, head, status, updated_at)
    SELECT 'ended ' || i, '{"status":"completed"}', 'completed', ${Date.now() + 1_000} + i FROM generate_series(1, 10000) AS i`)
  await pool.query('VACUUM ANALYZE hookloop.sessions')
  const calls: [string, unknown[]][] = []
  const query = pool.query.bind(pool)
  t.mock.method(pool, 'query', (text: string, values: unknown[]) => {
    calls.push([text, values])
    return query(text, values)
  })
  assert.deepEqual((await listed(store)).toSorted(), expected)
  const [text, values] = calls.find(([each]) => each.includes('ORDER BY'))!
  const { rows } = await query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values)
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  assert.match(plan, /sessions_by_status/)
  assert.doesNotMatch(plan, /Seq Scan/)
  await store.close()
  await pool.end()
})
