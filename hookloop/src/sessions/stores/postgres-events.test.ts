import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { startPostgres } from './postgres.fixture.ts'
import { postgresStore } from './postgres-store.ts'
import type { SessionStore } from './store.ts'
import { EventWriter } from '../log/event-writer.fixture.ts'
import { watchSession } from '../log/watch-session.ts'

const server = await startPostgres()
const { connectionString } = server
after(() => server.stop())

/** Follows a session and remembers what it has read. */
function follow(store: SessionStore, id = 'x') {
  const events = watchSession(store, id)[Symbol.asyncIterator]()
  const seqs: number[] = []
  return {
    seqs,
    async reach(seq: number): Promise<void> {
      while (seqs.at(-1) !== seq) {
        const next = await events.next()
        if (next.done === true) throw new Error(`It ended after ${seqs.join()}`)
        if (next.value.type === 'answered') seqs.push(Number(next.value.approval))
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

test('watchers in another process ask the database together, and no longer when the last one leaves', async (t) => {
  const schema = 'shared_poll'
  const mine = postgresStore({ connectionString, schema })
  const pool = new pg.Pool({ connectionString, max: 4 })
  const other = postgresStore({ pool, schema })
  const writer = await EventWriter.open(mine)
  await other.list()
  const asked = t.mock.method(pool, 'query')
  const polls = (): number => asked.mock.calls.filter(({ arguments: [text] }) => /id IN/.test(text)).length
  const watching = Array.from({ length: 30 }, () => follow(other))
  const reading = watching.map((each) => each.reach(3))
  const started = performance.now()
  for (const seq of [1, 2, 3]) await writer.add(seq)
  await Promise.all(reading)
  for (const { seqs } of watching) assert.deepEqual(seqs, [1, 2, 3])
  assert.ok(polls() <= 2 + (performance.now() - started) / 50, `${polls()} polls`)
  for (const { leave } of watching) await leave()
  const before = polls()
  await new Promise((resolve) => setTimeout(resolve, 120))
  assert.ok(polls() <= before, 'one that was under way')
  await mine.close()
  await other.close()
  await pool.end()
})

test('a watcher follows a session over a restart of the server without a gap', async () => {
  const schema = 'restarted'
  const [mine, other] = [postgresStore({ connectionString, schema }), postgresStore({ connectionString, schema })]
  const writer = await EventWriter.open(mine)
  const watching = follow(other)
  await writer.add(1, 2)
  await watching.reach(2)
  const reading = watching.reach(6)
  await server.down()
  await assert.rejects(writer.add('lost'), { code: 'STORE_FAILED' })
  await server.up()
  await writer.release()
  const next = await EventWriter.continue(mine)
  for (const seq of [3, 4, 5, 6]) await next.add(seq)
  await reading
  assert.deepEqual(watching.seqs, [1, 2, 3, 4, 5, 6])
  await watching.leave()
  await mine.close()
  await other.close()
})

test('a watcher ends at once when its store is closed while the database is down', async () => {
  const store = postgresStore({ connectionString, schema: 'closed' })
  const writer = await EventWriter.open(store)
  await writer.add(1)
  await writer.release()
  const events = watchSession(store, 'x')[Symbol.asyncIterator]()
  await events.next()
  const next = events.next()
  await server.down()
  await store.close()
  assert.equal((await next).done, true)
  await server.up()
})

test('a watcher rejects with the error of the database if the tables are gone', async () => {
  const store = postgresStore({ connectionString, schema: 'dropped' })
  await store.list()
  await query('DROP SCHEMA dropped CASCADE')
  await assert.rejects(follow(store).reach(1), { code: 'STORE_FAILED', message: /does not exist/ })
  await store.close()
})
