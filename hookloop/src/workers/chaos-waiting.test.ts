import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import pg from 'pg'
import { isSoak } from '../sessions/stores/kills.fixture.ts'
import { engines, TestFleet, until, type TestWorker } from './fleet.fixture.ts'

/** Sessions that the worker itself has driven until they wait, and all that wait: the others are copies in the database. */
const [DRIVEN, WAITING] = isSoak ? [2_000, 10_000] : [100, 500]

for (const engine of engines) {
  suite(`workers on ${engine}`, async () => {
    const fleet = await TestFleet.start(engine)
    const database = new pg.Pool({ connectionString: fleet.database.connectionString, max: 1 })
    after(async () => {
      await database.end()
      await fleet.stop()
    })

    test(`hold nothing for ${WAITING} sessions that wait for an answer, and resume the one that is answered`, async () => {
      const worker = await fleet.worker()
      const options = { agent: 'worker', metadata: { asks: true } }
      const ask = async (id: string): Promise<string> => {
        const result = await (await fleet.sessions.send(id, id, options)).result()
        assert.equal(result.status, 'suspended')
        return result.pending[0]!.id
      }
      await ask('original')
      await database.query(COPY, ['original', WAITING - DRIVEN])
      const before = await holdings(worker)
      const approvals = new Map<string, string>()
      const ids = Array.from({ length: DRIVEN - 1 }, (_, i) => `driven-${i}`).values()
      const askAll = async (): Promise<void> => {
        for (const id of ids) approvals.set(id, await ask(id))
      }
      await Promise.all(Array.from({ length: 20 }, askAll))
      const { rows } = await database.query(
        `SELECT count(*)::int AS n FROM hookloop.sessions WHERE status = 'suspended'`,
      )
      assert.deepEqual(rows, [{ n: WAITING }])

      const now = await holdings(worker)
      assert.equal(now.running, 0)
      assert.ok(now.resources.length < DRIVEN / 2, `it holds ${now.resources.join(', ')}`)
      const grown = Math.round((now.heapUsed - before.heapUsed) / (DRIVEN - 1))
      console.error(
        `${WAITING} sessions wait on ${engine}: the heap of a worker grew by ${grown} bytes for each that it drove.`,
      )

      const [id, approval] = [...approvals][0]!
      const events = fleet.sessions.watch(id, { after: Infinity })
      await fleet.sessions.answer(id, { approval, answer: 'allow', by: 'jane' })
      for await (const { type } of events) if (type === 'suspended') break
      assert.deepEqual((await fleet.outcome(id)).results.slice(0, 1), ['ok'])
    })
  })
}

/** What a worker holds now. */
async function holdings(worker: TestWorker) {
  const known = worker.reports.length
  const all = () => worker.reports.slice(known).flatMap((each) => (each.type === 'holds' ? [each] : []))
  worker.kill('SIGUSR2')
  await until('the worker says what it holds', () => all().length > 0)
  return all()[0]!
}

/** Copies a session as often as the second parameter says. */
const COPY = `
  WITH original AS (SELECT * FROM hookloop.sessions WHERE id = $1),
  copies AS (
    INSERT INTO hookloop.sessions (id, epoch, head, length, updated_at, status, agent)
    SELECT 'copy-' || n, epoch, head, length, updated_at, status, agent FROM original, generate_series(1, $2) AS n RETURNING key
  ), lines AS (
    INSERT INTO hookloop.lines (session, n, content)
    SELECT copies.key, n, content FROM copies, original, hookloop.lines AS stored WHERE stored.session = original.key
  )
  INSERT INTO hookloop.pieces (session, seq, content)
  SELECT copies.key, seq, content FROM copies, original, hookloop.pieces AS stored WHERE stored.session = original.key`
