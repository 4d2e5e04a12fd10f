import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { gatedModel } from '../../sessions/limits/limits.fixture.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { startPostgres } from '../../sessions/stores/postgres.fixture.ts'
import { fleet } from './fleet.ts'
import { serveSessions } from './serve-sessions.ts'

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
