import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { UIMessage } from 'ai'
import { after, afterEach, suite, test, type TestContext } from 'node:test'
import { TestChat } from '../serve/chat-server.fixture.ts'
import { toNodeListener } from '../serve/node-listener.ts'
import { serve } from '../serve/serve.ts'
import { engines, TestFleet } from './fleet.fixture.ts'

/** A web server that runs no agent. `asks`: whether tool calls need an approval. */
async function webServer(t: TestContext, fleet: TestFleet, asks: boolean): Promise<{ readonly url: string }> {
  const user = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined
  const handle = serve(fleet.sessions, { user, metadata: () => ({ asks }) })
  const server = createServer(toNodeListener(handle)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

for (const engine of engines) {
  suite(`a web server over a fleet on ${engine}`, async () => {
    const fleet = await TestFleet.start(engine, { agent: 'worker' })
    afterEach(() => fleet.killAll())
    after(() => fleet.stop())

    test('streams what workers do, and two tabs on different servers see the same', async (t) => {
      await fleet.worker()
      const chat = new TestChat(await webServer(t, fleet, false), { id: 'plain' })
      await chat.sendMessage({ text: 'plain' })
      assert.deepEqual([chat.texts, chat.states.length], [['plain', 'Done.'], 4])
      const { url } = await webServer(t, fleet, false)
      const loaded = await fetch(`${url}/api/chat/plain`, { headers: { 'x-user': 'ann' } })
      const other = new TestChat({ url }, { id: 'plain', messages: (await loaded.json()) as UIMessage[] })
      assert.deepEqual([other.texts, other.states], [chat.texts, chat.states])
    })

    test('shows questions of workers, and a worker continues when they are answered', async (t) => {
      const first = await fleet.worker()
      const chat = new TestChat(await webServer(t, fleet, true), { id: 'asked' })
      await chat.sendMessage({ text: 'asked' })
      await fleet.kill(first)
      await fleet.worker()
      for (let answered = 1; answered <= 4; answered++) {
        await chat.addToolApprovalResponse({ id: chat.questions[0]!, approved: true })
        const isAnswered = (): boolean => chat.questions.length === 1 || answered === 4
        await chat.until(() => chat.status === 'error' || (chat.status === 'ready' && isAnswered()))
        assert.equal(chat.error, undefined)
      }
      assert.equal(chat.texts.at(-1), 'Done.')
      assert.deepEqual(new Set(chat.states), new Set(['output-available']))
    })

    test('stops a run of a worker', async (t) => {
      await fleet.worker({ TOOL_MS: '60000' })
      const server = await webServer(t, fleet, false)
      const chat = new TestChat(server, { id: 'stopped' })
      const sent = chat.sendMessage({ text: 'stopped' })
      await chat.until(() => chat.messages.length > 1 && chat.states.includes('input-available'))
      const stopped = await fetch(`${server.url}/api/chat/stopped/stop`, {
        method: 'POST',
        headers: { 'x-user': 'ann', 'content-type': 'application/json' },
        body: '{}',
      })
      assert.equal(stopped.status, 204)
      await sent
      assert.equal(chat.status, 'ready')
    })
  })
}
