import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { storeContract } from '../../testing/store-contract.ts'
import { startPostgres } from './postgres.fixture.ts'
import { postgresStore } from './postgres-store.ts'
import type { SessionStore } from './store.ts'
import { processContract } from './store-processes.fixture.ts'

const server = await startPostgres()
const { connectionString } = server
const admin = new pg.Pool({ connectionString, allowExitOnIdle: true })
admin.on('error', () => undefined) // the server is restarted below
const sharedStore = postgresStore({ connectionString })
after(async () => {
  await sharedStore.close()
  await admin.end()
  await server.stop()
})

storeContract('postgresStore', (schema, leaseMs = 30_000) => postgresStore({ connectionString, schema, leaseMs }), {
  leaseMs: 2_000,
})
processContract('postgresStore', () => ({
  kind: 'postgres',
  place: connectionString,
  store: sharedStore,
  async expireLock(id) {
    await admin.query('UPDATE hookloop.sessions SET expires_at = 1 WHERE id = $1', [id])
  },
}))

let schemas = 0

/** A store of its own with two sessions of three lines each. */
async function scene(): Promise<{ store: SessionStore; schema: string }> {
  const schema = `scene_${schemas++}`
  const store = postgresStore({ pool: admin, schema })
  for (const id of ['good', 'bad']) {
    const writer = await store.open(id, { create: true })
    await writer.append(['one'])
    await writer.append(['two', 'three'], { head: { id } })
    await writer.release()
  }
  return { store, schema }
}

suite('tables that were changed', () => {
  const changes: readonly [what: string, code: string, change: (schema: string) => string][] = [
    ['has lost a line', 'SESSION_CORRUPT', (s) => `DELETE FROM ${s}.lines WHERE n = 0 AND session = 2`],
    ['has lost its last line', 'SESSION_CORRUPT', (s) => `DELETE FROM ${s}.lines WHERE n = 1 AND session = 2`],
    ['has a line too many', 'SESSION_CORRUPT', (s) => `UPDATE ${s}.sessions SET length = 2 ^ 30 WHERE id = 'bad'`],
    ['has a huge epoch', 'STORE_FAILED', (s) => `UPDATE ${s}.sessions SET epoch = 2147483647 WHERE id = 'bad'`],
  ]
  for (const [what, code, change] of changes) {
    test(`D11: a session that ${what} cannot be opened or cannot be read, and hides no other`, async () => {
      const { store, schema } = await scene()
      await admin.query(change(schema))
      await assert.rejects(
        store.open('bad').then(() => store.read('bad')),
        { code },
      )
      assert.deepEqual((await store.read('good'))?.lines, ['one', 'two', 'three'])
      assert.deepEqual((await store.list()).map(({ id }) => id).toSorted(), ['bad', 'good'])
    })
  }

  test('D11: a session whose head cannot be read is listed as such, and pollutes nothing', async () => {
    const { store, schema } = await scene()
    await admin.query(`UPDATE ${schema}.sessions SET head = '[1]' WHERE id = 'bad'`)
    const listed = await store.list()
    assert.match(listed.find(({ id }) => id === 'bad')!.problem!, /its head is not a JSON object/)
    assert.deepEqual(listed.find(({ id }) => id === 'good')!.head, { id: 'good' })
    await admin.query(`UPDATE ${schema}.sessions SET head = '{"__proto__":{"polluted":true},"of":1}' WHERE id = 'bad'`)
    assert.deepEqual((await store.read('bad'))?.head, { of: 1 })
    assert.equal('polluted' in {}, false)
  })

  test('D11: tables of another version, or of none, are rejected and not changed', async () => {
    const { schema } = await scene()
    for (const [version, code] of [
      [99, 'STATE_VERSION'],
      [0, 'STATE_VERSION'],
      [null, 'SESSION_CORRUPT'],
    ] as const) {
      await admin.query(`DELETE FROM ${schema}.store`)
      if (version !== null) await admin.query(`INSERT INTO ${schema}.store VALUES (${version})`)
      const store = postgresStore({ pool: admin, schema })
      await assert.rejects(store.list(), { code })
      await assert.rejects(store.open('new', { create: true }), { code })
    }
    const { rows } = await admin.query(`SELECT id FROM ${schema}.sessions`)
    assert.equal(rows.length, 2)
  })

  test('D16: no stored lease locks a session for ever', async () => {
    const { store, schema } = await scene()
    const held = `owner = 'elsewhere - - 1 - x'`
    const now = 'extract(epoch FROM now()) * 1000'
    for (const at of [`${now} + 3601000`, `'Infinity'`, `'NaN'`, `${now} - 1`]) {
      await admin.query(`UPDATE ${schema}.sessions SET ${held}, expires_at = ${at} WHERE id = 'bad'`)
      await (await store.open('bad')).release()
    }
    await admin.query(`UPDATE ${schema}.sessions SET ${held}, expires_at = ${now} + 30000 WHERE id = 'bad'`)
    await assert.rejects(store.open('bad'), { code: 'SESSION_BUSY', message: /process 1 on elsewhere/ })
  })
})

test('D01: several stores make their tables at once', async () => {
  const stores = Array.from({ length: 6 }, () => postgresStore({ connectionString, schema: 'at_once' }))
  const lists = await Promise.all(stores.map((store) => store.list()))
  await Promise.all(stores.map((store) => store.close()))
  assert.deepEqual(lists, [[], [], [], [], [], []])
})

test('D01: an append whose connection breaks is stored or not, never half or twice, and the next writer sees which', async () => {
  const { store } = await scene()
  for (let round = 0; round < 5; round++) {
    const writer = await store.open('good')
    const sent = writer.append([`${round} a`, `${round} b`])
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()`)
    const outcome = await Promise.resolve(sent).then(
      () => 'stored',
      (error: { code: string }) => error.code,
    )
    const again = await Promise.resolve()
      .then(() => writer.append([`${round} c`]))
      .then(
        () => 'stored',
        (error: { code: string }) => error.code,
      )
    assert.ok(outcome === again && ['stored', 'STORE_FAILED'].includes(outcome), `${outcome}, ${again}`)
    await writer.release()
    const of = (await store.read('good'))!.lines.filter((line) => line.startsWith(String(round))).join()
    assert.ok(
      outcome === 'stored' ? of === `${round} a,${round} b,${round} c` : ['', `${round} a,${round} b`].includes(of),
      of,
    )
  }
})

test('a store works again when the server is back, and fails with STORE_FAILED until then', async () => {
  const store = postgresStore({ connectionString, schema: 'restarted' })
  const writer = await store.open('x', { create: true })
  await writer.append(['one'])
  await server.restart()
  const next = await store.read('x').catch(() => store.read('x')) // one that was connected may notice only now
  assert.deepEqual(next?.lines, ['one'])
  await writer.append(['two'])
  await store.close()
  const nowhere = postgresStore({ connectionString: 'postgres://nobody@localhost:1/none' })
  await assert.rejects(nowhere.list(), { code: 'STORE_FAILED', message: /ECONNREFUSED/ })
  await nowhere.close()
})

test('a user who may not make tables can use those that are there', async () => {
  const { schema } = await scene()
  await admin.query(`
    CREATE ROLE guest LOGIN;
    GRANT USAGE ON SCHEMA ${schema} TO guest;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO guest`)
  const asGuest = connectionString.replace('hookloop@', 'guest@')
  const store = postgresStore({ connectionString: asGuest, schema })
  const writer = await store.open('good')
  await writer.append(['four'])
  await store.close()
  const elsewhere = postgresStore({ connectionString: asGuest, schema: 'not_there' })
  await assert.rejects(elsewhere.list(), { code: 'STORE_FAILED', message: /permission denied/ })
  await elsewhere.close()
})

test('D10: a schema is a name and nothing else', () => {
  for (const schema of ['', 'a"; DROP TABLE x; --', 'Upper', 'a b', 'a.b', '1a', 'x'.repeat(64), 'é'])
    assert.throws(() => postgresStore({ connectionString, schema }), { code: 'AGENT_INVALID_OPTION' })
})

test('statements are prepared, and not behind a pooler whose connections do not know them', async (t) => {
  const names: (string | undefined)[] = []
  let isPooler = false
  const { query } = pg.Pool.prototype as { query: (this: unknown, ...given: unknown[]) => Promise<unknown> }
  t.mock.method(pg.Pool.prototype, 'query', function (this: unknown, ...given: unknown[]) {
    const { name } = given[0] as { name?: string }
    names.push(name)
    if (isPooler && name !== undefined) throw Object.assign(new Error('it does not exist'), { code: '26000' })
    return query.apply(this, given)
  })
  const store = postgresStore({ connectionString })
  await store.read('nothing')
  assert.match(names.at(-1)!, /^[0-9a-f]{32}$/)
  isPooler = true
  assert.equal(await store.read('nothing'), undefined)
  assert.equal(names.at(-1), undefined)
  await store.close()
})

test('a pool of yours is used, and left open', async () => {
  const pool = new pg.Pool({ connectionString, max: 1 })
  const store = postgresStore({ pool, schema: 'yours' })
  const writer = await store.open('x', { create: true })
  await writer.append(['one'])
  await writer.append(['two'])
  await store.close()
  await assert.rejects(store.list(), { code: 'STORE_FAILED', message: /closed/ })
  assert.deepEqual((await pool.query('SELECT content FROM yours.lines ORDER BY n')).rows, [
    { content: 'one' },
    { content: 'two' },
  ])
  await pool.end()
})

test('options without a database are rejected', () => {
  assert.throws(() => postgresStore({}), { code: 'AGENT_INVALID_OPTION' })
  assert.throws(() => postgresStore({ connectionString, pool: admin }), { code: 'AGENT_INVALID_OPTION' })
  assert.throws(() => postgresStore({ connectionString, leaseMs: 1 }), { code: 'AGENT_INVALID_OPTION' })
})

test('without the package pg the first call says what to install', () => {
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => next(name === 'pg' ? 'pg-that-is-not-there' : name, context) })
    const { postgresStore } = await import(${JSON.stringify(fileURLToPath(new URL('postgres-store.ts', import.meta.url)))})
    await postgresStore({ connectionString: 'postgres://localhost/x' }).list().catch((error) => console.log(error.code, error.message))`
  const { stdout } = spawnSync(
    process.execPath,
    ['--conditions=hookloop-source', '--input-type=module', '-e', script],
    {
      encoding: 'utf8',
    },
  )
  assert.match(stdout, /^STORE_FAILED postgresStore needs the package pg: npm install pg/)
})
