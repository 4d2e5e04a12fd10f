import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { memoryRecording, type RecordEntry } from '../../effects/recording.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { answerApproval, listApprovals } from '../session/approvals.ts'
import { storeOf } from '../session/dying-store.fixture.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { replay } from './replay.ts'

/** A session and a recording that Hookloop 0.1 has written, both with an approval, and where the session waits for it. */
const stored = JSON.parse(readFileSync(new URL('version-0.1.fixture.json', import.meta.url), 'utf8')) as {
  readonly waiting: number
  readonly session: readonly string[]
  readonly recording: readonly RecordEntry[]
}

const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, ask: true, execute: () => 'paid' })
const model = scriptedModel(({ messages }) =>
  messages.length === 1 ? { toolCalls: [{ name: 'pay', args: { to: 'ann' }, id: 'pay' }] } : 'Done.',
)

test('a session of version 0.1 with an approval is replayed', async () => {
  const agent = createAgent({ model, store: memoryStore(), use: [pay, approval('suspend')] })
  assert.deepEqual((await replay(stored.session, { agent })).record, { status: 'complete' })
})

test('a recording of version 0.1 with an approval is replayed', async () => {
  const agent = createAgent({ model, use: [pay, approval({ answer: () => 'allow' })] })
  const report = await replay(memoryRecording(stored.recording), { agent, input: 'Pay.' })
  assert.deepEqual(report.record, { status: 'complete' })
})

test('a session that waits since version 0.1 is resumed, and the approver is asked about the tool as it is now', async () => {
  const store = await storeOf('s', stored.session.slice(0, stored.waiting))
  const agent = createAgent({ model, store, use: [pay, approval('suspend')] })
  const { state } = readSession((await store.read('s'))!.lines, 's')
  const cursor = state!.execution!.cursor!
  const id = cursor.phase === 'tools' ? cursor.step.calls[0]!.approval!.id : ''
  assert.equal((await agent.resume('s', { answers: { [id]: 'allow' } })).status, 'suspended')
  const [asked] = await listApprovals(store)
  await answerApproval(store, { session: 's', approval: asked!.id, answer: 'allow' })
  assert.equal((await agent.resume('s')).status, 'completed')
})
