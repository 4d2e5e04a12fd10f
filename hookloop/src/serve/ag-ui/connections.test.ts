import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { tool } from '../../core/agent/tool.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { paid, serving, slowModel } from '../chat-server.fixture.ts'
import { checkLoaded, Client } from './client.fixture.ts'

test('a client that leaves does not stop the run, and a page that is loaded in the middle continues it', async () => {
  const { model, finish } = slowModel()
  const server = await serving({ model })
  const client = new Client(server)
  const said = client.say('Go.', 'm').catch(() => undefined)
  await client.until(({ texts }) => texts.at(-1) === 'assistant: One ')
  client.abortRun()
  await said
  const page = new Client(server)
  const loaded = page.runAgent()
  await page.until(({ texts }) => texts.at(-1) === 'assistant: One ')
  finish()
  await loaded
  assert.deepEqual(page.texts, ['user: Go.', 'assistant: One two.'])
  await checkLoaded(server, page)
})

test('a message that is sent again after its question was answered gets the whole answer, and asks nothing', async () => {
  const server = await serving()
  const [client, tab, later] = [new Client(server), new Client(server), new Client(server)]
  await client.say('Pay ann', 'm')
  await tab.say('Pay ann', 'm')
  assert.deepEqual(tab.pendingInterrupts, client.pendingInterrupts)
  await client.answer({ approved: true })
  await later.say('Pay ann', 'm')
  assert.deepEqual([later.messages, later.pendingInterrupts, paid.splice(0)], [client.messages, [], ['ann']])
})

test('a run that is paused because its server closes is continued by a page that another server loads', async () => {
  const stored = memoryStore()
  const closing = Promise.withResolvers<() => Promise<void>>()
  const shutdown = tool({
    name: 'shutdown',
    description: 'Closes the server.',
    input: z.object({}),
    execute: async () => void (await closing.promise)(),
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)!.role === 'user' ? { toolCalls: [{ name: 'shutdown', args: {} }] } : 'Back again.',
  )
  const server = await serving({ model, store: stored, use: [shutdown] })
  closing.resolve(() => server.runner.close())
  const client = new Client(server)
  await client.say('Go.')
  assert.deepEqual([client.types.at(-1), client.received.at(-1)!['code']], ['RUN_ERROR', 'STREAM_ENDED'])
  const other = await serving({ model, store: stored, use: [shutdown] })
  const page = new Client(other)
  await page.runAgent()
  assert.deepEqual([page.texts.at(-1), page.types.at(-1)], ['assistant: Back again.', 'RUN_FINISHED'])
  await checkLoaded(other, page)
})
