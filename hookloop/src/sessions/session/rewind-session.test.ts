import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { textOf } from '../../core/state/message.ts'
import { readSession } from '../log/read-session.ts'
import { replay } from '../replay/replay.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { listApprovals } from './approvals.ts'
import { exportSession, importSession } from './export-session.ts'
import { forkSession, listPoints } from './fork-session.ts'
import { rewindSession } from './rewind-session.ts'
import { watchSession } from '../log/watch-session.ts'

let answers = 0

/** Answers each message with a new number; "pay" waits for an approval. */
function chatty(store: SessionStore) {
  const pay = tool({ name: 'pay', description: '', input: { type: 'object' }, ask: true, execute: () => 'paid' })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)!
    const isPay = last.role === 'user' && textOf(last.content) === 'pay'
    return isPay ? { toolCalls: [{ name: 'pay', args: {} }] } : `answer ${++answers}`
  })
  return createAgent({ model, store, use: [pay, approval('suspend')] })
}

async function said(store: SessionStore, id = 's'): Promise<readonly string[]> {
  const { state } = readSession((await store.read(id))!.lines, id)
  return state!.messages.slice().map(({ content }) => textOf(content))
}

async function talk() {
  answers = 0
  const store = memoryStore()
  const agent = chatty(store)
  for (const text of ['one', 'two', 'three']) await agent.run(text, { session: 's' })
  return { store, agent, session: agent.session('s') }
}

test('an answer is regenerated in place, under the same id', async () => {
  const { store, session } = await talk()
  const before = (await store.read('s'))!.lines
  await session.rewind()
  const run = await session.resume()
  assert.equal(run?.text, 'answer 4')
  assert.deepEqual(await said(store), ['one', 'answer 1', 'two', 'answer 2', 'three', 'answer 4'])
  const { lines } = (await store.read('s'))!
  assert.deepEqual(lines.slice(0, before.length), before, 'the old lines stay')
  await session.rewind({ message: 'other' })
  await session.resume()
  assert.deepEqual((await said(store)).slice(-2), ['other', 'answer 5'])
})

test('new input after a rewind is rejected with what can be done about the message that waits, and both work', async () => {
  const { store, session } = await talk()
  await session.rewind()
  await assert.rejects(session.send('four'), {
    code: 'STATE_SUSPENDED',
    message:
      `The session "s" has a message that waits for its answer and takes no new input. Use agent.resume('s') first. ` +
      `Or replace the message with agent.session('s').rewind({ message }).`,
  })
  await session.rewind({ message: 'four' })
  await session.resume()
  await session.send('five')
  assert.deepEqual((await said(store)).slice(-4), ['four', 'answer 4', 'five', 'answer 5'])
})

test('a rewind logs which runs are no longer part of the conversation, and the message keeps its turn', async () => {
  const { store, agent, session } = await talk()
  await agent.run('four', { session: 's', turn: 'm4' })
  const [one] = (await listPoints(store, 's')).map(({ seq }) => seq)
  await session.rewind()
  await session.resume()
  await session.rewind({ at: one!, message: 'first' })
  await session.resume()
  const events = []
  for await (const event of watchSession(store, 's', { follow: false })) events.push(event)
  const inputs = events.filter((event) => event.type === 'input')
  assert.deepEqual(
    inputs.map(({ message, turn }) => [textOf(message.content), turn]),
    [['one'], ['two'], ['three'], ['four', 'm4'], ['four', 'm4'], ['first']].map(([text, turn]) => [text, turn]),
  )
  const [first, second] = events.filter((event) => event.type === 'rewound').map(({ runs }) => runs)
  const runs = inputs.map(({ run }) => run)
  assert.deepEqual([first, second], [[runs[3]], runs.slice(0, 5)])
})

test('the first answer of a session is regenerated', async () => {
  const store = memoryStore()
  const agent = chatty(store)
  await agent.run('one', { session: 's' })
  await rewindSession(store, 's')
  await agent.resume('s')
  assert.equal((await said(store)).length, 2)
})

test('a session goes back to a step by its number, and continues from there', async () => {
  const { store, session } = await talk()
  const points = await listPoints(store, 's')
  assert.deepEqual(
    points.map(({ input }) => input),
    ['one', 'two', 'three'],
  )
  await session.rewind({ at: points[0]!.seq })
  assert.deepEqual(await said(store), ['one', 'answer 1'])
  await session.send('four')
  assert.deepEqual(await said(store), ['one', 'answer 1', 'four', 'answer 4'])
  const now = await listPoints(store, 's')
  assert.deepEqual(
    now.map(({ input, isRewound = false }) => [input, isRewound]),
    [
      ['one', false],
      ['two', true],
      ['three', true],
      ['four', false],
    ],
  )
  await session.rewind({ at: now[0]!.seq, message: 'uno' })
  await session.resume()
  assert.equal((await said(store))[0], 'uno')
  await assert.rejects(session.rewind({ at: 10_000 }), { code: 'AGENT_INVALID_OPTION', message: /listPoints/ })
  await assert.rejects(rewindSession(store, 'none'), { code: 'SESSION_UNKNOWN' })
})

test('what was dropped can be forked from, replayed, exported and imported', async () => {
  const { store, agent, session } = await talk()
  const points = await listPoints(store, 's')
  await session.rewind({ at: points[0]!.seq })
  await session.send('four')
  await forkSession(store, 's', { at: points[2]!.seq, as: 'copy' })
  assert.deepEqual(await said(store, 'copy'), ['one', 'answer 1', 'two', 'answer 2', 'three', 'answer 3'])
  const stored = (await store.read('s'))!
  for (let run = 0; run < 4; run++)
    assert.deepEqual((await replay(stored, { agent, run })).record, { status: 'complete' }, String(run))
  await importSession(store, await exportSession(store, 's'), { as: 'imported' })
  assert.deepEqual(await said(store, 'imported'), await said(store))
})

test('going back drops an open run with its approvals, and does not refund what was spent', async () => {
  const { store, agent, session } = await talk()
  const spent = (await session.state())!.usage
  assert.equal((await agent.run('pay', { session: 's' })).status, 'suspended')
  await session.rewind({ at: (await listPoints(store, 's'))[1]!.seq })
  assert.deepEqual(await listApprovals(store), [])
  const usage = (await session.state())!.usage
  assert.ok(usage.inputTokens > spent.inputTokens)
  assert.equal((await session.send('five')).status, 'completed')
})

test('a session that another process works on is not rewound', async () => {
  const { store, session } = await talk()
  const writer = await store.open('s')
  await assert.rejects(session.rewind(), { code: 'SESSION_BUSY' })
  await writer.release()
})
