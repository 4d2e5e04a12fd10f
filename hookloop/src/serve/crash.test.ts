import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { readRuns } from '../sessions/log/read-runs.ts'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import { serving, TestChat } from './chat-server.fixture.ts'
import { hangingAgent } from './crash.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-serve-'))
const database = join(folder, 'chats.db')
const store = sqliteStore(database)
after(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A chat whose run works in a server in another process. */
async function workingElsewhere(id: string) {
  const fixture = join(import.meta.dirname, 'crash-process.fixture.ts')
  const child = spawn(process.execPath, ['--conditions=hookloop-source', fixture, database], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const port = (await lines.next()).value as string
  const chat = new TestChat({ url: `http://127.0.0.1:${port}` }, { id })
  const sent = chat.sendMessage({ text: 'Go.' })
  assert.equal((await lines.next()).value, 'working')
  return { child, chat, sent }
}

test('a run whose server was killed continues when the page reconnects to another one, in the same message', async () => {
  const { child, chat, sent } = await workingElsewhere('c')
  await chat.until(({ states }) => states[0] === 'input-available')
  child.kill('SIGKILL')
  await Promise.all([once(child, 'exit'), sent])
  const server = await serving({ agent: hangingAgent(() => 'worked'), store })
  const again = new TestChat(server, { id: 'c', messages: structuredClone(chat.messages) })
  await again.resumeStream()
  assert.equal(again.messages.length, 2)
  assert.equal(again.messages[1]!.id, chat.messages[1]!.id)
  assert.deepEqual([again.texts, again.states], [['Go.', 'I begin.|Done.'], ['output-available']])
  assert.equal((await server.fetch('ann', 'chat/c/stream')).status, 204)
})

test('a run that another server works on is stopped by any server over the same store, for its user only', async () => {
  const { child, chat, sent } = await workingElsewhere('elsewhere')
  const here = await serving({ agent: hangingAgent(() => 'worked'), store })
  assert.equal((await here.fetch('bob', 'chat/elsewhere/stop', { method: 'POST' })).status, 204)
  assert.equal((await store.list({ user: 'ann', status: 'running' })).length, 1)
  assert.equal((await here.fetch('ann', 'chat/elsewhere/stop', { method: 'POST' })).status, 204)
  const [stopped] = await store.list({ user: 'ann' })
  const [run] = await readRuns(store, stopped!.id)
  assert.deepEqual(
    [stopped!.head['status'], run?.final?.message],
    ['cancelled', 'The run was stopped on request of ann.'],
  )
  await sent
  const again = new TestChat(here, { id: 'elsewhere', messages: structuredClone(chat.messages) })
  await again.sendMessage({ text: 'Once more.' })
  assert.equal(again.texts.at(-1), 'I begin.|Done.')
  child.kill('SIGKILL')
})

test('a server that is closed suspends its runs after their step, and they continue when the page reconnects', async () => {
  const { promise, resolve: finish } = Promise.withResolvers<string>()
  const { promise: working, resolve: begin } = Promise.withResolvers<void>()
  const agent = hangingAgent(() => {
    begin()
    return promise
  })
  const server = await serving({ agent, store })
  const chat = new TestChat(server, { id: 'closed' })
  const sent = chat.sendMessage({ text: 'Go.' })
  await working
  const closed = server.runner.close()
  finish('worked')
  await Promise.all([closed, sent])
  assert.deepEqual([chat.texts, chat.states, chat.status], [['Go.', 'I begin.'], ['output-available'], 'ready'])
  await server.close()
  const next = await serving({ agent, store })
  const again = new TestChat(next, { id: 'closed', messages: structuredClone(chat.messages) })
  await again.resumeStream()
  assert.deepEqual([again.texts, again.messages.length], [['Go.', 'I begin.|Done.'], 2])
})
