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
import { Tables } from './sqlite-tables.ts'
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

async function checkCounts(store: SessionStore): Promise<void> {
  const counts = [...status, 'completed'].map((each) => store.count({ status: each }))
  assert.deepEqual(await Promise.all([...counts, store.count({ status }), store.count()]), [1, 1, 1, 10_000, 3, 10_003])
}

test('SQLite finds and counts sessions with an open run by an index, whatever number of others has ended', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-open-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 's.db')
  const store = sqliteStore(path)
  await openSessions(store)
  const database = new DatabaseSync(path)
  database.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
    INSERT INTO sessions (id, epoch, renewed_at, lease_ms, head, updated_at, status)
    SELECT 'ended ' || i, 1, 1, 30000, '{"status":"completed"}', ${Date.now() + 1_000} + i, 'completed' FROM n`)
  const texts: string[] = []
  const observed = new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (name === 'prepare') return (text: string) => target.prepare(texts[texts.push(text) - 1]!)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  assert.deepEqual((await listed(store)).toSorted(), expected)
  new Tables(observed).list({ status, after: undefined, limit: undefined })
  const query = texts.find((text) => text.includes('FROM sessions') && text.includes('ORDER BY'))!
  const values = { statuses: JSON.stringify(status), limit: -1 }
  const plan = database
    .prepare(`EXPLAIN QUERY PLAN ${query}`)
    .all(values)
    .map(({ detail }) => String(detail))
  assert.ok(plan.includes('SEARCH sessions USING INDEX sessions_by_status (status=?)'), plan.join('\n'))
  assert.ok(!plan.some((detail) => detail.startsWith('SCAN sessions')), plan.join('\n'))

  await checkCounts(store)
  new Tables(observed).count({ status: 'completed' })
  const counted = database.prepare(`EXPLAIN QUERY PLAN ${texts.at(-1)!}`).all({ statuses: '["completed"]' })
  assert.match(JSON.stringify(counted), /SEARCH sessions USING COVERING INDEX sessions_by_status/)
  database.close()
  await store.close()
})

test('Postgres finds and counts sessions with an open run by an index, whatever number of others has ended', async (t) => {
  const server = await startPostgres()
  t.after(() => server.stop())
  const pool = new pg.Pool({ connectionString: server.connectionString })
  const store = postgresStore({ pool })
  await openSessions(store)
  await pool.query(`
    INSERT INTO hookloop.sessions (id, lease_ms, head, status, updated_ms)
    SELECT 'ended ' || i, 30000, '{"status":"completed"}', 'completed', ${Date.now() + 1_000} + i FROM generate_series(1, 10000) AS i`)
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

  await checkCounts(store)
  await store.count({ status: 'suspended' })
  const counted = (await query<{ 'QUERY PLAN': string }>(`EXPLAIN ${calls.at(-1)![0]}`, calls.at(-1)![1])).rows
  assert.match(JSON.stringify(counted), /Index Only Scan using sessions_by_status/)
  await store.close()
  await pool.end()
})
