import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { sseResponse, type SseEvent, type SseOptions } from './sse.ts'

type Source = (signal: AbortSignal) => AsyncIterator<SseEvent>

const numbers = (count: number, taken: number[] = []): Source =>
  async function* () {
    for (let i = 1; i <= count; i++) {
      taken.push(i)
      yield { id: String(i), data: i }
    }
  }

/** A source that never has an event, and ends when its signal aborts. */
const silence: Source = (signal) => ({
  next: async () => {
    if (!signal.aborted) await once(signal, 'abort')
    return { done: true, value: undefined }
  },
})

/** A response to a request that can be aborted, and what resolves when its source is to end. */
function respond(source: Source, options: Partial<SseOptions> = {}) {
  const request = new AbortController()
  const ended = Promise.withResolvers<void>()
  const events: Source = (signal) => {
    signal.addEventListener('abort', () => ended.resolve())
    return source(signal)
  }
  const response = sseResponse(request, events, { keepAliveMs: 60_000, idleMs: 600_000, ...options })
  return { response, request, ended: ended.promise }
}

test('events are sent with their ids, with headers that keep proxies from buffering them', async () => {
  const { response } = respond(numbers(2), { headers: { 'x-own': 'yes' } })
  assert.equal(await response.text(), 'id: 1\ndata: 1\n\nid: 2\ndata: 2\n\n')
  const { headers } = response
  assert.deepEqual(
    ['content-type', 'cache-control', 'x-accel-buffering', 'x-own'].map((name) => headers.get(name)),
    ['text/event-stream; charset=utf-8', 'no-cache, no-transform', 'no', 'yes'],
  )
})

test('a client that does not read takes nothing from the source', async () => {
  const taken: number[] = []
  const reader = respond(numbers(1_000, taken)).response.body!.getReader()
  for (let i = 0; i < 3; i++) await reader.read()
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(taken.length <= 5, `${taken.length} were taken`)
  await reader.cancel()
})

test('a source without events is kept alive by comments', async () => {
  const { response, request } = respond(silence, { keepAliveMs: 1 })
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  assert.equal(new TextDecoder().decode(value), ': keep-alive\n\n')
  request.abort()
  while (!(await reader.read()).done);
})

test('a source that has no event for too long is ended', async () => {
  assert.doesNotMatch(await respond(silence, { idleMs: 2 }).response.text(), /data/)
})

test('a client that takes nothing for too long is disconnected, and its source is ended', async () => {
  const { response, ended } = respond(numbers(1_000), { idleMs: 2 })
  const reader = response.body!.getReader()
  await reader.read()
  await ended
  await assert.rejects(async () => {
    for (;;) if ((await reader.read()).done) return
  }, /takes no data/)
})

test('a source that fails ends the response, and nothing is left of it', async (t) => {
  const cleared = t.mock.method(globalThis, 'clearInterval')
  const failing: Source = () => ({ next: () => Promise.reject(new Error('no more')) })
  await assert.rejects(respond(failing).response.text(), /no more/)
  assert.equal(cleared.mock.callCount(), 1)
})

test('a client that leaves ends the source', async () => {
  const { response, ended } = respond(silence)
  const reader = response.body!.getReader()
  void reader.read()
  await reader.cancel()
  await ended
})
