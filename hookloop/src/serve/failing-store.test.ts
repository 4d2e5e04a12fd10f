import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentError } from '../errors.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { serving, type Served } from './chat-server.fixture.ts'

/** Sends a message and reads the whole response. */
async function bytes(server: Served): Promise<string> {
  const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }
  const body = JSON.stringify({ id: 'c', trigger: 'submit-message', messages: [message] })
  return (await server.fetch('ann', 'chat', { method: 'POST', body })).text()
}

test('a failure of the store in a stream is reported to the server, and the client gets no details', async () => {
  const inner = memoryStore()
  const store: SessionStore = {
    ...inner,
    watch: () => {
      throw new AgentError('STORE_FAILED', 'password hunter2 in /srv/db')
    },
  }
  const server = await serving({ store })
  const text = await bytes(server)
  assert.match(text, /The server has failed/)
  assert.doesNotMatch(text, /hunter2|srv/)
  assert.equal(server.errors.length, 1)
})

test('a turn whose store fails ends at once with an error, and the failure is reported', async () => {
  const inner = memoryStore()
  const store: SessionStore = {
    ...inner,
    async open(id, options) {
      const writer = await inner.open(id, options)
      return {
        ...writer,
        append(lines, more) {
          if (lines.some((line) => line.includes('"t":"end"'))) throw new Error('the disk hunter2 is full')
          return writer.append(lines, more)
        },
      }
    },
  }
  const server = await serving({ store })
  const text = await bytes(server)
  assert.match(text, /"type":"error"/)
  assert.doesNotMatch(text, /hunter2/)
  assert.deepEqual(
    server.errors.map((error) => (error as AgentError).code),
    ['STORE_FAILED'],
  )
})
