import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { TurnDriver, type TurnReport } from './turn-driver.ts'

test('a turn of a session that a newer version has written is left to another worker, and not rejected', async () => {
  const store = memoryStore()
  const writer = await store.open('newer', { create: true })
  await writer.append(['{"type":"session","version":99}'])
  await writer.release()
  const reports: TurnReport[] = []
  const agent = createAgent({ model: scriptedModel(() => 'Hello.'), store })
  const driver = new TurnDriver('test', { agent, onTurn: (report) => reports.push(report) })
  await assert.rejects(driver.drive({ session: 'newer', turn: 't', input: 'Hi' }), { code: 'STATE_VERSION' })
  const said = reports.map(({ type, error }) => [type, error?.code])
  assert.deepEqual(said, [
    ['started', undefined],
    ['retried', 'STATE_VERSION'],
  ])
})
