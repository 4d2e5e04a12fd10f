import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundedFetch } from './bounded-fetch.ts'

/** What is read of a stream of events that arrives in chunks. */
async function read(...chunks: readonly string[]): Promise<string> {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
  const answer = new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  const fetching = boundedFetch(async () => answer, { maxBytes: 100, rejected: () => undefined })
  return (await fetching('http://localhost/')).text()
}

test('an event has a maximum length, also on many lines, and a stream has any number of them', async () => {
  const event = `data: ${'a'.repeat(90)}\r\n\r\n`
  assert.equal(await read(event, event.slice(0, 99), event.slice(99), event), event.repeat(3))
  await assert.rejects(read('data: a\n'.repeat(20), '\n'), /an answer of more than 100 bytes/)
  await assert.rejects(read(`data: ${'a'.repeat(100)}`), /an answer of more than 100 bytes/)
})
