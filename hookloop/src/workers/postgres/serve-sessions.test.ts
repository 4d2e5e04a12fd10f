import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { createAgent } from '../../create-agent.ts'
import { gatedModel } from '../../sessions/limits/limits.fixture.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { startPostgres } from '../../sessions/stores/postgres.fixture.ts'
import { fleet } from './fleet.ts'
import { serveSessions } from './serve-sessions.ts'

test('one place of a worker waits for turns, whatever number it drives, and none if it drives as many as it may', async (t) => {
  const places = watchPlaces(t)
  const database = await startPostgres()
  const { connectionString } = database
  const [model, store] = [gatedModel(), memoryStore()]
  const worker = await serveSessions({ agent: createAgent({ model, store }), connectionString, maxRuns: 4 })
  const sessions = await fleet({ connectionString, store })
  t.after(async () => {
    await Promise.all([worker.close(), sessions.close()])
    await database.stop()
  })
  let started = 0
  for (const count of [1, 4, 2, 4, 3]) {
    const names = Array.from({ length: count }, () => `run ${++started}`)
    const sent = await Promise.all(names.map((name) => sessions.send(name, name)))
    await model.started(started)
    await places.are({ driving: count, waiting: count === 4 ? 0 : 1 })
    for (const name of names) model.answer(name)
    await Promise.all(sent.map((each) => each.result()))
    await places.are({ driving: 0, waiting: 1 })
  }
  assert.equal(places.mostWaiting, 1)
})

type Counts = { readonly driving: number; readonly waiting: number }

/** The places of a worker in the queue: what each does now. */
function watchPlaces(t: TestContext) {
  const places = new Map<object, keyof Counts>()
  const ids = new Map<string, object>()
  let [mostWaiting, news] = [0, Promise.withResolvers<void>()]
  const count = (what: keyof Counts): number => [...places.values()].filter((each) => each === what).length
  const changed = (): void => {
    mostWaiting = Math.max(mostWaiting, count('waiting'))
    news.resolve()
    news = Promise.withResolvers()
  }
  const work = Reflect.get(PgBoss.prototype, 'work') as (this: PgBoss, ...given: Work) => Promise<string>
  const offWork = Reflect.get(PgBoss.prototype, 'offWork')
  t.mock.method(PgBoss.prototype, 'work', async function (this: PgBoss, ...[queue, options, take]: Work) {
    const place = {}
    places.set(place, 'waiting')
    changed()
    const id = await work.call(this, queue, options, async (jobs) => {
      places.set(place, 'driving')
      changed()
      try {
        return await take(jobs)
      } finally {
        if (places.has(place)) places.set(place, 'waiting')
        changed()
      }
    })
    ids.set(id, place)
    return id
  })
  t.mock.method(PgBoss.prototype, 'offWork', async function (this: PgBoss, ...given: OffWork) {
    places.delete(ids.get(given[1].id)!)
    changed()
    return offWork.call(this, ...given)
  })
  return {
    get mostWaiting() {
      return mostWaiting
    },
    async are(wanted: Counts): Promise<void> {
      while (count('driving') !== wanted.driving || count('waiting') !== wanted.waiting) await news.promise
    },
  }
}

type Work = [queue: string, options: object, take: (jobs: unknown) => Promise<unknown>]
type OffWork = [queue: string, options: { readonly id: string }]

test('a worker drives as many turns at a time as it may, and takes the next one when one has ended', async (t) => {
  const database = await startPostgres()
  const { connectionString } = database
  const model = gatedModel()
  const store = memoryStore()
  const worker = await serveSessions({ agent: createAgent({ model, store }), connectionString, maxRuns: 3 })
  const sessions = await fleet({ connectionString, store })
  t.after(async () => {
    await Promise.all([worker.close(), sessions.close()])
    await database.stop()
  })
  for (const round of [1, 2]) {
    const names = Array.from({ length: 8 }, (_, i) => `round ${round}, run ${i}`)
    const sent = await Promise.all(names.map((name) => sessions.send(name, name)))
    const before = (round - 1) * names.length
    await model.started(before + 3)
    for (let started = 3; started <= names.length; started++) {
      await model.started(before + started)
      assert.deepEqual([worker.running, model.open.length], [3, 3])
      model.answer(model.open[0]!)
    }
    for (const name of model.open) model.answer(name)
    for (const each of sent) assert.equal((await each.result()).status, 'completed')
    assert.equal(worker.running, 0)
  }
})

test('a turn that has waited for a year is driven, and is the same run when the queue has deleted its result', async (t) => {
  const database = await startPostgres()
  const { connectionString } = database
  const [model, store] = [gatedModel(), memoryStore()]
  const sessions = await fleet({ connectionString, store })
  const sent = await sessions.send('waits', 'Hello.', { turn: 'one' })
  const queue = new PgBoss({ connectionString, schema: 'hookloop_turns', supervise: false, schedule: false })
  const client = new pg.Client({ connectionString })
  await Promise.all([queue.start(), client.connect()])
  const times = ['created_on', 'start_after', 'keep_until'].map((name) => `${name} = ${name} - interval '1 year'`)
  await client.query(`UPDATE hookloop_turns.job SET ${times.join(', ')}`)
  await queue.supervise()
  const worker = await serveSessions({ agent: createAgent({ model, store }), connectionString })
  t.after(async () => {
    await Promise.all([worker.close(), sessions.close(), queue.stop({ graceful: false }), client.end()])
    await database.stop()
  })
  await model.started(1)
  model.answer('Hello.')
  const result = await sent.result()
  assert.equal(result.status, 'completed')

  await client.query('DELETE FROM hookloop_turns.job')
  const again = await sessions.send('waits', 'Hello.', { turn: 'one' })
  assert.deepEqual(await again.result(), result)
})
