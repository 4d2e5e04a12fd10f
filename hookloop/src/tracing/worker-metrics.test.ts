import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { inMemory } from './in-memory.fixture.ts'
import { workerMetrics } from './worker-metrics.ts'

test('the turns of a worker are counted while they run, by how they ended, and by why they are repeated', async () => {
  const otel = inMemory()
  const onTurn = workerMetrics({ meter: otel.meters.getMeter('test') })
  for (const lagMs of [20, 40, 60]) onTurn({ type: 'started', lagMs })
  assert.deepEqual(await otel.values('hookloop.worker.running'), [3])
  onTurn({ type: 'retried', durationMs: 5, error: { code: 'STORE_FAILED' } })
  onTurn({ type: 'retried', durationMs: 5, error: {} })
  onTurn({ type: 'started' })
  onTurn({ type: 'ended', durationMs: 500, status: 'completed', takenOver: true })
  assert.deepEqual(await otel.values('hookloop.worker.running'), [1])
  assert.deepEqual(await otel.values('hookloop.worker.retries'), ['STORE_FAILED', 1, '_OTHER', 1])
  assert.deepEqual(await otel.values('hookloop.worker.takeovers'), [1])
  assert.deepEqual(await otel.measured('hookloop.worker.turn.duration'), [
    { 'hookloop.execution.status': 'completed', count: 1, sum: 0.5 },
  ])
})

test('the lag of turns is measured in seconds', async () => {
  const otel = inMemory()
  const onTurn = workerMetrics({ meter: otel.meters.getMeter('test') })
  for (const lagMs of [250, 250]) onTurn({ type: 'started', lagMs })
  assert.deepEqual(await otel.measured('hookloop.worker.turn.lag'), [{ count: 2, sum: 0.5 }])
})

test('open sessions are counted by status, and a store that cannot be read disturbs no other metric', async () => {
  const otel = inMemory()
  const store = memoryStore()
  for (const [id, status] of Object.entries({ a: 'suspended', b: 'suspended', c: 'running', d: 'completed' })) {
    const writer = await store.open(id, { create: true })
    await writer.append(['{}'], { head: { status } })
    if (status !== 'running') await writer.release()
  }
  let isDown = false
  const list: typeof store.list = async (filter) => (isDown ? Promise.reject(new Error('down')) : store.list(filter))
  const onTurn = workerMetrics({ meter: otel.meters.getMeter('test'), store: { ...store, list } })
  assert.deepEqual(await otel.values('hookloop.sessions.open'), ['running', 1, 'suspended', 2, 'interrupted', 0])
  for (let i = 0; i < 1_500; i++) {
    const writer = await store.open(`waits ${i}`, { create: true })
    await writer.append(['{}'], { head: { status: 'suspended' } })
    await writer.release()
  }
  assert.deepEqual(await otel.values('hookloop.sessions.open'), ['running', 1, 'suspended', 1_502, 'interrupted', 0])
  isDown = true
  onTurn({ type: 'started' })
  assert.deepEqual(await otel.values('hookloop.worker.running'), [1])
})
