import assert from 'node:assert/strict'
import { after, suite, test, type TestContext } from 'node:test'
import pg from 'pg'
import { createTables } from './postgres-queries.ts'
import { startPostgres } from './postgres.fixture.ts'

const waits = { forSetupMs: 50, forTableMs: 50 }
const SETUP = 'SELECT pg_advisory_xact_lock(1214999601)'

suite('the tables of a store on Postgres', async () => {
  const server = await startPostgres()
  const { connectionString } = server
  const pool = new pg.Pool({ connectionString })
  after(async () => {
    await pool.end()
    await server.stop()
  })

  /** A connection with an open transaction. */
  async function transaction(t: TestContext, text: string): Promise<pg.Client & { readonly processID: number }> {
    const client = new pg.Client({ connectionString, application_name: 'backup' })
    await client.connect()
    t.after(() => client.end())
    await client.query(`BEGIN; ${text}`)
    return client as pg.Client & { readonly processID: number }
  }

  async function oldTables(schema: string): Promise<string> {
    await createTables(pool, schema)
    await pool.query(`UPDATE ${schema}.store SET version = 4`)
    return schema
  }

  for (const [what, schema, text] of [
    ['set up by another process', 'at_setup', SETUP],
    ['read by another connection, and of an older version', 'in_use', 'SELECT FROM in_use.sessions'],
    ['changed by another connection', 'changed', 'LOCK changed.store'],
  ] as const)
    test(`that are ${what} are waited for in vain for a limited time, and the error names the connection`, async (t) => {
      if (schema !== 'at_setup') await oldTables(schema)
      const { processID } = await transaction(t, text)
      const expected = new RegExp(
        `the schema "${schema}" .* locked by another connection: process ${processID}, backup, .*idle in transaction, since 2\\d.*pg_terminate_backend`,
      )
      await assert.rejects(createTables(pool, schema, waits), { message: expected })
    })

  test('that another process sets up are waited for', async (t) => {
    const schema = await oldTables('waited')
    const client = await transaction(t, SETUP)
    const created = createTables(pool, schema)
    const isWaiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`
    while ((await pool.query(isWaiting)).rowCount === 0);
    await client.query('COMMIT')
    await created
    assert.deepEqual((await pool.query(`SELECT version FROM ${schema}.store`)).rows, [{ version: 6 }])
  })

  test('leave the timeouts of a connection as they were', async (t) => {
    const one = new pg.Pool({ connectionString, max: 1 })
    t.after(() => one.end())
    await createTables(one, 'untouched')
    await createTables(one, 'untouched')
    assert.deepEqual((await one.query('SHOW lock_timeout')).rows, [{ lock_timeout: '0' }])
  })
})
