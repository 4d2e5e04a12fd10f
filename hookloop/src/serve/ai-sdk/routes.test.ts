import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serving } from '../chat-server.fixture.ts'

test('POST /api/chat takes one message as "message", and answers it once', async () => {
  const server = await serving()
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }
  const post = (body: object): Promise<Response> =>
    server.fetch('ann', 'chat', { method: 'POST', body: JSON.stringify({ id: 'c', ...body }) })
  assert.match(await (await post({ message })).text(), /"delta":"Hello\."/)
  assert.match(await (await post({ message })).text(), /"delta":"Hello\."/)
  const shown = (await (await server.fetch('ann', 'chat/c')).json()) as { readonly role: string }[]
  assert.deepEqual(
    shown.map(({ role }) => role),
    ['user', 'assistant'],
  )
  for (const wrong of [{ message: 'Hello.' }, { message: null }, {}]) assert.equal((await post(wrong)).status, 400)
})
