import assert from 'node:assert/strict'
import { setImmediate as idle } from 'node:timers/promises'
import { test } from 'node:test'
import { AgentState } from '../../core/state/agent-state.ts'
import { textMessage } from '../../core/state/message.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { loadSession, readSession } from './read-session.ts'
import { SessionJournal } from './session-journal.ts'
import { SessionReader } from './session-reader.ts'
import { SESSION_VERSION } from './session-records.ts'

/** The journal of a new session, and the lines that are stored. */
async function newSession() {
  const store = memoryStore()
  const writer = await store.open('s', { create: true })
  const journal = new SessionJournal(writer, new SessionReader({ id: 's' }))
  const lines = async (): Promise<readonly string[]> => (await store.read('s'))!.lines
  journal.append({ t: 'session', version: SESSION_VERSION, id: 's', at: 0, agent: 'clerk' })
  return { journal, lines, store }
}

test('what is appended is stored as soon as the process is idle, each time', async () => {
  const { journal, lines } = await newSession()
  for (const count of [1, 2, 3]) {
    journal.flushSoon()
    await idle()
    assert.equal((await lines()).length, count)
    journal.append({ t: 'suspended', at: count })
  }
})

test('the size that limits how many sessions are held in memory counts every line that was appended', async () => {
  const { journal, lines } = await newSession()
  for (let at = 1; at < 5; at++) journal.append({ t: 'suspended', at })
  await journal.flush()
  assert.equal(journal.reader.chars, (await lines()).join('').length)
})

test('what waits is stored when the journal is closed, and nothing of it after a failure', async () => {
  for (const [ends, expected] of [
    ['close', 1],
    ['abandon', 0],
  ] as const) {
    const { journal, lines, store } = await newSession()
    await journal.flush()
    const before = (await lines()).length
    journal.append({ t: 'suspended', at: 1 })
    journal.addPiece({ seq: 1_000_100, text: '{}' })
    await journal[ends]()
    const { pieces } = (await store.read('s', { pieces: { after: 0, before: Infinity } }))!
    assert.deepEqual([(await lines()).length - before, pieces?.length], [expected, expected])
  }
})

test('a snapshot is taken when 65,536 characters have come, and then when twice as many have come as it has', async () => {
  const { journal, lines } = await newSession()
  const message = textMessage('user', 'x'.repeat(10_000))
  let state = AgentState.create({ agentId: 'a' })
  for (let at = 1; at <= 30; at++) journal.appendState((state = state.withMessage(message)), at)
  await journal.flush()
  const at = (await lines()).flatMap((line, i) => (kindOf(line) === 'snapshot' ? [i] : []))
  assert.deepEqual(at, [8, 23]) // 7 states of 10,000 characters, and twice the 70,000 characters of the first snapshot
})

test('a session with two large states in one write is read with the last one', async () => {
  const { journal, lines, store } = await newSession()
  const messages = [200_000, 2_000_000].map((chars) => textMessage('user', 'x'.repeat(chars)))
  for (const at of [1, 2])
    journal.appendState(AgentState.create({ agentId: 'a' }).withMessages(messages.slice(0, at)), at)
  await journal.flush()
  assert.deepEqual((await lines()).map(kindOf), ['session', 'state', 'snapshot', 'state', 'snapshot'])
  for (const { state } of [readSession(await lines(), 's'), (await loadSession(store, 's'))!])
    assert.equal(state!.messages.length, 2)
})

function kindOf(line: string): string {
  return (JSON.parse(line) as { readonly t: string }).t
}
