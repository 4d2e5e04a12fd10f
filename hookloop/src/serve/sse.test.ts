import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sseResponse, type SseEvent } from './sse.ts'

const calm = { keepAliveMs: 60_000, idleMs: 600_000, onEnd: () => undefined, headers: {} }

async function* numbers(taken: number[], count: number): AsyncGenerator<SseEvent> {
  for (let i = 1; i <= count; i++) {
    taken.push(i)
    yield { id: String(i), data: JSON.stringify(i) }
  }
}

/** A source that never has an event, and ends when `end` is called. */
function silence(): {
  readonly source: AsyncIterator<SseEvent>
  readonly end: () => void
  readonly ended: Promise<void>
} {
  const { promise, resolve } = Promise.withResolvers<IteratorResult<SseEvent>>()
  return {
    source: { next: () => promise },
    end: () => resolve({ done: true, value: undefined }),
    ended: promise.then(() => undefined),
  }
}

test('events are sent with their ids, with headers that keep proxies from buffering them', async () => {
  const response = sseResponse(numbers([], 2), { ...calm, headers: { 'x-own': 'yes' } })
  assert.equal(await response.text(), 'id: 1\ndata: 1\n\nid: 2\ndata: 2\n\n')
  const { headers } = response
  assert.deepEqual(
    ['content-type', 'cache-control', 'x-accel-buffering', 'x-own'].map((name) => headers.get(name)),
    ['text/event-stream; charset=utf-8', 'no-cache, no-transform', 'no', 'yes'],
  )
})

test('a client that does not read takes nothing from the source', async () => {
  const taken: number[] = []
  const reader = sseResponse(numbers(taken, 1_000), calm).body!.getReader()
  for (let i = 0; i < 3; i++) await reader.read()
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(taken.length <= 5, `${taken.length} were taken`)
  await reader.cancel()
})

test('a source without events is kept alive by comments', async () => {
  const { source, end } = silence()
  const reader = sseResponse(source, { ...calm, keepAliveMs: 1 }).body!.getReader()
  const { value } = await reader.read()
  assert.equal(new TextDecoder().decode(value), ': keep-alive\n\n')
  end()
  while (!(await reader.read()).done);
})

test('a source that has no event for too long is ended', async () => {
  const { source, end } = silence()
  assert.doesNotMatch(await sseResponse(source, { ...calm, idleMs: 2, onEnd: end }).text(), /data/)
})

test('a client that takes nothing for too long is disconnected, and its source is ended', async () => {
  const ended = Promise.withResolvers<void>()
  const reader = sseResponse(numbers([], 1_000), { ...calm, idleMs: 2, onEnd: ended.resolve }).body!.getReader()
  await reader.read()
  await ended.promise
  await assert.rejects(async () => {
    for (;;) if ((await reader.read()).done) return
  }, /takes no data/)
})

test('a client that leaves ends the source', async () => {
  const { source, end, ended } = silence()
  const reader = sseResponse(source, { ...calm, onEnd: end }).body!.getReader()
  void reader.read()
  await reader.cancel()
  await ended
})
