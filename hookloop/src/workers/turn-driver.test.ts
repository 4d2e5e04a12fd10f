import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Capability } from '../core/agent/capability.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { gatedModel } from '../sessions/limits/limits.fixture.ts'
import { dyingStore, toolBegin } from '../sessions/session/dying-store.fixture.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { LanguageModel } from '../core/state/inference.ts'
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

/** A worker, and how it reports the end of a turn. */
function workerOn(store: SessionStore, model: LanguageModel, use: readonly Capability[] = []) {
  const reports: TurnReport[] = []
  const agent = createAgent({ model, store, use })
  const driver = new TurnDriver('test', { agent, onTurn: (report) => reports.push(report) })
  const end = () => {
    const { status, takenOver } = reports.find(({ type }) => type === 'ended')!
    return [status, takenOver]
  }
  return { drive: driver.drive.bind(driver), close: driver.close.bind(driver), end }
}

const turn = { session: 's', turn: 't', input: 'Hi' }

test('a run that another worker has left is reported as taken over', async () => {
  const store = memoryStore()
  const model = scriptedModel(({ messages }) => (messages.length === 1 ? { toolCalls: [{ name: 'look' }] } : 'Hello.'))
  const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
  const dying = dyingStore(store, { at: toolBegin, stored: true })
  await Promise.race([workerOn(dying, model, [look]).drive(turn), dying.died])
  const other = workerOn(store, model, [look])
  await other.drive(turn)
  assert.deepEqual(other.end(), ['completed', true])
})

for (const [how, isDrained] of [
  ['ends', false],
  ['hands over', true],
] as const)
  test(`a run that a living worker ${how} while another one waits for it is not reported as taken over`, async () => {
    const [memory, model, waits] = [memoryStore(), gatedModel(), Promise.withResolvers<void>()]
    const open: SessionStore['open'] = (...what) =>
      memory.open(...what).catch((error: unknown) => {
        waits.resolve()
        throw error
      })
    const store = { ...memory, open }
    const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
    const [living, other] = [workerOn(store, model, [look]), workerOn(store, model, [look])]
    const driven = living.drive(turn).catch(() => undefined)
    await model.started(1)
    const waiting = other.drive(turn)
    await waits.promise
    const closed = isDrained ? living.close() : undefined
    const call = { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: {} } as const
    model.answer('Hi', isDrained ? { content: [call], finishReason: 'tool-calls' } : {})
    if (isDrained) await model.started(2)
    if (isDrained) model.answer('Hi')
    await Promise.all([waiting, driven, closed])
    assert.deepEqual(other.end(), ['completed', undefined])
  })

test('a turn that is cancelled before its input is taken stays cancelled when the engine calls a worker again', async () => {
  const store = memoryStore()
  const model = scriptedModel(() => 'Hello.')
  const first = await workerOn(store, model).drive(turn, AbortSignal.abort())
  const again = await workerOn(store, model).drive(turn)
  assert.equal(first.status, 'cancelled')
  assert.deepEqual(again, first)
  assert.equal(model.requests.length, 0)
  assert.equal((await workerOn(store, model).drive({ ...turn, turn: 'next' })).status, 'completed')
})
