import assert from 'node:assert/strict'
import { setImmediate as idle } from 'node:timers/promises'
import { test } from 'node:test'
import { AgentState } from '../../state/agent-state.ts'
import { textMessage } from '../../state/message.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { loadSession, readSession } from './read-session.ts'
import { SessionJournal } from './session-journal.ts'
import { SESSION_VERSION } from './session-records.ts'

/** The journal of a new session, and the lines that are stored. */
async function newSession() {
  const store = memoryStore()
  const writer = await store.open('s', { create: true })
  const read = (options = {}) => writer.read(options)
  const journal = new SessionJournal(writer, await loadSession(store, { id: 's', head: writer.head, read }))
  const lines = async (): Promise<readonly string[]> => (await store.read('s'))!.lines
  journal.append({ type: 'session', version: SESSION_VERSION, id: 's', at: 0, agent: 'clerk' })
  return { journal, lines, store }
}

test('what is appended is stored as soon as the process is idle, each time', async () => {
  const { journal, lines } = await newSession()
  for (const count of [1, 2, 3]) {
    journal.flushSoon()
    await idle()
    assert.equal((await lines()).length, count)
    journal.append({ type: 'sessionSuspended', at: count })
  }
})

test('the size that limits how many sessions are held in memory counts every line that was appended', async () => {
  const { journal, lines } = await newSession()
  for (let at = 1; at < 5; at++) journal.append({ type: 'sessionSuspended', at })
  await journal.flush()
  assert.equal(journal.loaded!.chars, (await lines()).join('').length)
})

test('a state is stored with its ledger, and without one if nothing was logged', async () => {
  const { journal, lines } = await newSession()
  const state = AgentState.create({ agentId: 'a' })
  const entry = { step: 0, trigger: 'onUserInput', hook: 'check', mode: 'observe', durationMs: 0 } as const
  journal.appendState(state, { phase: 'changed', at: 1 })
  journal.appendState(state.withMetadata('user', 'ann'), { phase: 'changed', at: 2, ledger: [entry] })
  await journal.flush()
  const stored = (await lines()).slice(1).map((line) => 'ledger' in (JSON.parse(line) as object))
  assert.deepEqual(stored, [false, true])
})

test('events are stored when work on the session fails, but not if something before them, or all lines, are missing', async () => {
  const nothing = (): void => undefined
  const waiting: readonly (readonly [stored: boolean, (journal: SessionJournal) => void, expected: number])[] = [
    [true, nothing, 1],
    [true, (journal) => journal.append({ type: 'sessionSuspended', at: 1 }), 0],
    [true, (journal) => journal.append({ type: 'begin', key: 'r/0/inference', kind: 'inference', input: 1 }), 0],
    [true, (journal) => journal.setHead({ title: 'Monday' }), 0],
    [false, nothing, 0],
  ]
  for (const [i, [stored, wait, expected]] of waiting.entries()) {
    const { journal, store } = await newSession()
    if (stored) await journal.flush()
    wait(journal)
    journal.addEvent({ text: JSON.stringify({ seq: journal.nextEventSeq() }) })
    await journal.abandon()
    const events: unknown[] = []
    for await (const event of store.watch('s', { follow: false })) events.push(event)
    assert.equal(events.length, expected, String(i))
  }
})

test('a model call that has begun is stored before the next state', async () => {
  const { journal, lines } = await newSession()
  journal.append({ type: 'begin', key: 'r/0/inference', kind: 'inference', input: 1 })
  journal.appendState(AgentState.create({ agentId: 'a' }), { phase: 'changed', at: 1 })
  await journal.flush()
  const types = (await lines()).map((line) => (JSON.parse(line) as { type: string }).type)
  assert.deepEqual(types, ['session', 'begin', 'state'])
})

test('a session with two large states in one write has one snapshot, and is read with the last state', async () => {
  const { journal, lines, store } = await newSession()
  const messages = [200_000, 2_000_000].map((chars) => textMessage('user', 'x'.repeat(chars)))
  for (const at of [1, 2]) {
    const state = AgentState.create({ agentId: 'a' }).withMessages(messages.slice(0, at))
    journal.appendState(state, { phase: 'changed', at })
  }
  await journal.flush()
  const snapshots = (await lines()).filter((line) => (JSON.parse(line) as { type: string }).type === 'snapshot')
  const { state } = readSession((await store.read('s'))!.lines, 's')
  assert.deepEqual([snapshots.length, state!.messages.length], [1, 2])
})
