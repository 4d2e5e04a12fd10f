import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { startPostgres } from './postgres.fixture.ts'
import { channelOf } from './postgres-listener.ts'
import { postgresStore } from './postgres-store.ts'
import type { SessionStore, StoredEvent } from './store.ts'

const server = await startPostgres()
const { connectionString } = server
after(() => server.stop())

const event = (seq: number): StoredEvent => ({ text: JSON.stringify({ seq }) })

/** Follows a session and remembers what it has read. */
function follow(store: SessionStore, id = 'x') {
  const events = store.watch(id)[Symbol.asyncIterator]()
  const seqs: number[] = []
  return {
    seqs,
    async reach(seq: number): Promise<void> {
      while (seqs.at(-1) !== seq) {
        const next = await events.next()
        if (next.done === true) throw new Error(`It ended after ${seqs.join()}`)
        seqs.push(next.value.seq)
      }
    },
    leave: () => events.return!(),
  }
}

async function query(text: string, values: unknown[] = []): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<Record<string, unknown>>(text, values)
  await client.end()
  return rows
}

/** The connections that listen. */
async function listeners(schema: string): Promise<readonly number[]> {
  const rows = await query(`SELECT pid FROM pg_stat_activity WHERE query = $1`, [`LISTEN ${channelOf(schema)}`])
  return rows.map(({ pid }) => Number(pid))
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A pool whose checks for new events are never answered, so that only notifications wake a watcher. */
function deafPool(): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 4 })
  const real = pool.query.bind(pool) as (...args: unknown[]) => unknown
  const answer = (...args: unknown[]): unknown =>
    String(args[0]).includes('id = ANY') ? new Promise(() => undefined) : real(...args)
  return Object.assign(pool, { query: answer as typeof pool.query })
}

for (const when of ['after', 'before'] as const)
  test(`a watcher from now on gets what the same store writes afterwards with a writer that was opened ${when} it, even if the database is slow to say what the last event is`, async () => {
    const pool = new pg.Pool({ connectionString, max: 4 })
    const real = pool.query.bind(pool) as (...args: unknown[]) => unknown
    const store = postgresStore({ pool, schema: `slow_start_${when}` })
    await store.read('x') // creates the tables
    const opened = when === 'before' ? await store.open('x', { create: true }) : undefined
    let answer: (() => void) | undefined
    const slow = (...args: unknown[]): unknown =>
      answer === undefined
        ? new Promise<void>((resolve) => (answer = resolve)).then(() => real(...args))
        : real(...args)
    Object.assign(pool, { query: slow })
    const events = store.watch('x', { after: Infinity })[Symbol.asyncIterator]()
    const written = Promise.resolve(opened ?? store.open('x', { create: true })).then(async (writer) => {
      await writer.append(['one'], { events: [event(1)] })
      return writer
    })
    await until(async () => answer !== undefined)
    await Promise.race([written, new Promise((resolve) => setTimeout(resolve, 100))]) // enough for a store that does not wait
    answer!()
    assert.equal((await events.next()).value?.seq, 1)
    await (await written).release()
    await store.close()
    await pool.end()
  })

test('a watcher in another process is woken by a notification, on one connection for all watchers, which ends with the last', async () => {
  const schema = 'notified'
  const mine = postgresStore({ connectionString, schema })
  const pool = deafPool()
  const other = postgresStore({ pool, schema })
  const writer = await mine.open('x', { create: true })
  const watching = Array.from({ length: 30 }, () => follow(other))
  const reading = watching.map((each) => each.reach(3))
  await until(async () => (await listeners(schema)).length === 1)
  for (const seq of [1, 2, 3]) await writer.append([`line ${seq}`], { events: [event(seq)] })
  await Promise.all(reading)
  for (const { seqs } of watching) assert.deepEqual(seqs, [1, 2, 3])
  for (const { leave } of watching) await leave()
  await until(async () => (await listeners(schema)).length === 0)
  await mine.close()
  await other.close()
  await pool.end()
})

test('a watcher whose listening connection is lost connects again and has missed nothing', async () => {
  const schema = 'lost'
  const mine = postgresStore({ connectionString, schema })
  const pool = deafPool()
  const other = postgresStore({ pool, schema })
  const writer = await mine.open('x', { create: true })
  const watching = follow(other)
  for (let seq = 1; seq <= 6; seq++) {
    const reading = watching.reach(seq)
    await until(async () => (await listeners(schema)).length === 1)
    const [pid] = await listeners(schema)
    await query('SELECT pg_terminate_backend($1)', [pid])
    await writer.append([], { events: [event(seq)] })
    await reading
  }
  assert.deepEqual(watching.seqs, [1, 2, 3, 4, 5, 6])
  await mine.close()
  await other.close()
  await pool.end()
})

test('a watcher follows a session over a restart of the server without a gap', async () => {
  const schema = 'restarted'
  const [mine, other] = [postgresStore({ connectionString, schema }), postgresStore({ connectionString, schema })]
  let writer = await mine.open('x', { create: true })
  const watching = follow(other)
  await writer.append(['one'], { events: [event(1), event(2)] })
  await watching.reach(2)
  const reading = watching.reach(6)
  await server.down()
  await assert.rejects(Promise.resolve(writer.append(['two'], { events: [event(3)] })), { code: 'STORE_FAILED' })
  await server.up()
  await writer.release()
  writer = await mine.open('x')
  for (let seq = writer.eventSeq + 1; seq <= 6; seq++) await writer.append([], { events: [event(seq)] })
  await reading
  assert.deepEqual(watching.seqs, [1, 2, 3, 4, 5, 6])
  await watching.leave()
  await mine.close()
  await other.close()
})

test('a watcher ends at once when its store is closed while the database is down', async () => {
  const store = postgresStore({ connectionString, schema: 'closed' })
  const writer = await store.open('x', { create: true })
  await writer.append([], { events: [event(1)] })
  await writer.release()
  const events = store.watch('x')[Symbol.asyncIterator]()
  await events.next()
  const next = events.next()
  await server.down()
  await store.close()
  assert.equal((await next).done, true)
  await server.up()
})

test('a pool that cannot lend a connection, or has only one, is watched by polling', async () => {
  const schema = 'polled'
  const mine = postgresStore({ connectionString, schema })
  const pool = new pg.Pool({ connectionString, max: 1 })
  const bare = { query: (text: string, values?: unknown[]) => pool.query(text, values) }
  const writer = await mine.open('x', { create: true })
  const stores = [postgresStore({ pool, schema }), postgresStore({ pool: bare, schema })]
  const watching = stores.map((store) => follow(store))
  await writer.append([], { events: [event(1)] })
  for (const each of watching) await each.reach(1)
  await writer.append([], { events: [event(2)] })
  for (const each of watching) await each.reach(2)
  assert.deepEqual(await listeners(schema), [])
  for (const store of stores) await store.close()
  await mine.close()
  await pool.end()
})

test('a watcher rejects with the error of the database if the tables are gone', async () => {
  const store = postgresStore({ connectionString, schema: 'dropped' })
  await store.list()
  await query('DROP SCHEMA dropped CASCADE')
  await assert.rejects(follow(store).reach(1), { code: 'STORE_FAILED', message: /does not exist/ })
  await store.close()
})

test('tables of a version without events are extended when they are opened', async () => {
  const schema = 'earlier'
  const first = postgresStore({ connectionString, schema })
  const writer = await first.open('x', { create: true })
  await writer.append(['one'])
  await writer.release()
  await first.close()
  await query(`DROP TABLE ${schema}.events`)
  await query(`UPDATE ${schema}.store SET version = 4`)
  const store = postgresStore({ connectionString, schema })
  const next = await store.open('x')
  assert.deepEqual([next.eventSeq, next.length], [0, 1])
  await next.append(['two'], { events: [event(1)] })
  await follow(store).reach(1)
  assert.deepEqual((await query(`SELECT max(version) AS version FROM ${schema}.store`))[0], { version: 5 })
  await store.close()
})
