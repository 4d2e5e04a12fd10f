import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { AgentEvent } from '../../core/state/event.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { AgentError } from '../../errors.ts'
import { EventWriter } from './event-writer.fixture.ts'
import { watchSession, type WatchOptions } from './watch-session.ts'

/** What an event of the fixture says. */
function saidBy(event: AgentEvent): string {
  if (event.type === 'answered') return event.approval
  return event.type === 'text' ? event.delta : event.type
}

async function take(events: AsyncIterable<AgentEvent>, count: number): Promise<readonly string[]> {
  const said: string[] = []
  for await (const event of events) if (said.push(saidBy(event)) === count) break
  return said
}

const all = (store: SessionStore, options: WatchOptions = {}): Promise<readonly string[]> =>
  take(watchSession(store, 'x', { follow: false, ...options }), Infinity)

suite('watchSession', () => {
  test('yields all events in order and then each new one', async () => {
    const store = memoryStore()
    const writer = await EventWriter.open(store)
    await writer.add(1, 2)
    const events = take(watchSession(store, 'x'), 6)
    await writer.addPieces('a', 'b')
    await writer.add(3)
    await writer.addPieces('c')
    assert.deepEqual(await events, ['1', '2', 'a', 'b', '3', 'c'])
  })

  test('starts after the number of any event', async () => {
    const store = memoryStore()
    const writer = await EventWriter.open(store)
    const [seqs, said]: [number[], string[]] = [[0], []]
    for (const what of ['1', 'a', 'b', '2', '3', 'c']) {
      await (/\d/.test(what) ? writer.add(what) : writer.addPieces(what))
      seqs.push(writer.last)
      said.push(what)
    }
    for (const [i, after] of seqs.entries()) assert.deepEqual(await all(store, { after }), said.slice(i))
  })

  test('with after: Infinity, yields what is stored after the call', async () => {
    const store = memoryStore()
    const writer = await EventWriter.open(store)
    await writer.add(1)
    await writer.addPieces('a')
    const events = watchSession(store, 'x', { after: Infinity })
    assert.deepEqual(await all(store, { after: Infinity }), [])
    await writer.addPieces('b')
    await writer.add(2)
    assert.deepEqual(await take(events, 2), ['b', '2'])
  })

  test('yields pieces until the next turn starts', async () => {
    const store = memoryStore()
    const writer = await EventWriter.open(store)
    await writer.startTurn('one')
    await writer.addPieces('a')
    await writer.add(1)
    await writer.addPieces('b')
    assert.deepEqual(await all(store), ['input', 'a', '1', 'b'])
    const after = writer.last
    await writer.startTurn('two')
    await writer.addPieces('c')
    assert.deepEqual(await all(store), ['input', '1', 'input', 'c'])
    assert.deepEqual(await all(store, { after }), ['input', 'c'])
  })

  test('waits for a session that does not exist yet', async () => {
    const store = memoryStore()
    const events = [take(watchSession(store, 'x'), 2), take(watchSession(store, 'x', { after: Infinity }), 2)]
    assert.deepEqual(await all(store), [])
    assert.equal(await store.read('x'), undefined, 'a watcher does not create it')
    await (await EventWriter.open(store)).add(1, 2)
    for (const each of events) assert.deepEqual(await each, ['1', '2'])
  })

  test('ends when the session is deleted, and does not continue with another one of the same id', async () => {
    const store = memoryStore()
    const writer = await EventWriter.open(store)
    await writer.add(1)
    const iterator = watchSession(store, 'x')[Symbol.asyncIterator]()
    await iterator.next()
    const next = iterator.next()
    await writer.release()
    await store.delete('x')
    await (await EventWriter.open(store)).add(2, 3)
    assert.equal((await next).done, true)
  })

  test('ends when its signal aborts, the store is closed, or the reader leaves while it waits', async () => {
    const store = memoryStore()
    await (await EventWriter.open(store)).add(1)
    const leave = new AbortController()
    const waiting = watchSession(store, 'x', { signal: leave.signal })[Symbol.asyncIterator]()
    await waiting.next()
    const aborted = waiting.next()
    const stream = ReadableStream.from(watchSession(store, 'none')).getReader()
    const reading = stream.read()
    await stream.cancel()
    assert.equal((await reading).done, true)
    leave.abort()
    assert.equal((await aborted).done, true)
    assert.deepEqual(await take(watchSession(store, 'x', { signal: AbortSignal.abort() }), 1), [])
    const open = watchSession(store, 'x')[Symbol.asyncIterator]()
    await open.next()
    const closed = open.next()
    const unread = watchSession(store, 'x')[Symbol.asyncIterator]()
    await unread.next() // a reader that has stopped reading without leaving does not keep a store open
    await store.close()
    assert.equal((await closed).done, true)
  })

  test('reads a long log page by page, and misses nothing while it grows', async () => {
    const store = memoryStore()
    const writer = await EventWriter.open(store)
    const texts = Array.from({ length: 1_200 }, (_, i) => String(i))
    await writer.add(...texts.slice(0, 600))
    const reads: (number | undefined)[] = []
    const counting: SessionStore = {
      ...store,
      read: (id, options) => {
        reads.push(options?.after)
        return store.read(id, options)
      },
    }
    const events = take(watchSession(counting, 'x'), 1_200)
    for (let i = 600; i < 1_200; i += 30) {
      await writer.add(...texts.slice(i, i + 30))
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.deepEqual(await events, texts)
    assert.ok(reads.length > 4, `${reads.length} reads`)
  })

  test('reads again after the connection to a database was lost, and reports any other error', async () => {
    const store = memoryStore()
    await (await EventWriter.open(store)).add(1)
    const failing = (...causes: readonly unknown[]): SessionStore => {
      const left = [...causes]
      return {
        ...store,
        read: async (id, options) => {
          const cause = left.shift()
          if (cause !== undefined) throw new AgentError('STORE_FAILED', 'failed', { cause })
          return store.read(id, options)
        },
      }
    }
    const lost = [Object.assign(new Error('reset'), { code: 'ECONNRESET' }), new Error('Connection terminated')]
    assert.deepEqual(await take(watchSession(failing(...lost), 'x'), 1), ['1'])
    for (const code of ['42P01', 'ERR_SQLITE_ERROR', 'EACCES']) {
      const refused = failing(Object.assign(new Error('no'), { code }))
      await assert.rejects(take(watchSession(refused, 'x'), 1), { code: 'STORE_FAILED' })
    }
  })

  test('rejects with SESSION_CORRUPT for a line that was changed', async () => {
    const store = memoryStore()
    await (await EventWriter.open(store)).add(1, 2)
    const { lines } = (await store.read('x'))!
    const changed = lines.with(2, lines[2]!.replace('"2"', '"3"'))
    const corrupt: SessionStore = {
      ...store,
      read: async (id, options) => ({
        ...(await store.read(id, options))!,
        lines: changed.slice((options?.after ?? -1) + 1),
      }),
    }
    await assert.rejects(take(watchSession(corrupt, 'x'), 2), {
      code: 'SESSION_CORRUPT',
      message: /Line 3 of the session/,
    })
  })
})
