import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { sizesOf } from './file-events.ts'
import { lockSession } from './file-lock.ts'
import { fileStore } from './file-store.ts'
import type { SessionStore, SessionWriter, StoredEvent } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-events-'))
after(() => rmSync(root, { recursive: true, force: true }))

function events(from: number, to: number, { transient = false, length = 0 } = {}): readonly StoredEvent[] {
  const all = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  return all.map((seq) => ({ text: JSON.stringify({ seq, filler: 'é'.repeat(length) }), transient }))
}

async function seqs(store: SessionStore, count: number, from = 0): Promise<readonly number[]> {
  const found: number[] = []
  for await (const { seq } of store.watch('x', { after: from })) if (found.push(seq) === count) break
  return found
}

/** A session with six events in two appends. */
async function scene(): Promise<{ store: SessionStore; writer: SessionWriter; file: (name: string) => string }> {
  const folder = mkdtempSync(join(root, 'store-'))
  const store = fileStore(folder)
  const writer = await store.open('x', { create: true })
  await writer.append(['one'], { events: events(1, 3) })
  await writer.append(['two'], { events: events(4, 6) })
  return { store, writer, file: (name) => join(folder, 'x', name) }
}

suite('an event file that was changed makes a watcher reject with SESSION_CORRUPT and stays as it is:', () => {
  const changes: Record<string, (path: string) => void> = {
    'no header': (path) => writeFileSync(path, readFileSync(path, 'utf8').split('\n').slice(1).join('\n')),
    'the header of another segment': (path) => edit(path, '"segment":1', '"segment":2'),
    'a first line without end': (path) => writeFileSync(path, 'x'.repeat(100_000)),
    'an empty file': (path) => writeFileSync(path, ''),
    'a batch that is not JSON': (path) => edit(path, '{"batch":{"first":4', '{"batch":{"first":4x'),
    'a batch without a length': (path) =>
      edit(path, /"bytes":\d+,"at":(\d+),"epoch":1\}\}\n\{"seq":4/, '"at":$1,"epoch":1}}\n{"seq":4'),
    'a batch with a negative number': (path) => edit(path, '"first":4', '"first":-4'),
    'a batch whose number is too large to be exact': (path) => edit(path, '"first":4', '"first":1e300'),
    'a batch that repeats a number': (path) => edit(path, '"first":4', '"first":3'),
    'a batch with fewer events than it says': (path) => edit(path, '"first":4,"count":3', '"first":4,"count":4'),
    'a line that is too long to be the start of a batch': (path) => {
      truncateSync(path, readFileSync(path, 'utf8').indexOf('{"batch":{"first":4'))
      appendFileSync(path, 'x'.repeat(5_000))
    },
    'text that is not UTF-8': (path) =>
      writeFileSync(path, Buffer.from(readFileSync(path, 'latin1').replace('{"seq":5', '{"\xff\xff\xff":5'), 'latin1')),
    'a link': (path) => {
      renameSync(path, `${path}.moved`)
      symlinkSync(`${path}.moved`, path)
    },
  }
  for (const [title, change] of Object.entries(changes))
    test(title, async () => {
      const { store, writer, file } = await scene()
      await writer.release()
      change(file('events-1.jsonl'))
      const before = readFileSync(file('events-1.jsonl'), 'latin1')
      await assert.rejects(seqs(store, 7), { code: 'SESSION_CORRUPT' })
      assert.deepEqual((await store.read('x'))?.lines, ['one', 'two'])
      assert.equal(readFileSync(file('events-1.jsonl'), 'latin1'), before)
    })
})

test('an event file of a newer version is rejected with STATE_VERSION', async () => {
  const { store, file } = await scene()
  edit(file('events-1.jsonl'), '"version":1', '"version":2')
  await assert.rejects(seqs(store, 1), { code: 'STATE_VERSION', message: /newer Hookloop/ })
})

test('a watcher rejects with SESSION_CORRUPT when the event file is truncated while it waits', async () => {
  const { store, file } = await scene()
  const found: number[] = []
  const watching = (async () => {
    for await (const { seq } of store.watch('x')) {
      found.push(seq)
      if (seq === 6) truncateSync(file('events-1.jsonl'), 200)
    }
  })()
  await assert.rejects(watching, { code: 'SESSION_CORRUPT', message: /events-1\.jsonl was truncated/ })
  assert.deepEqual(found, [1, 2, 3, 4, 5, 6])
})

test('a writer whose event file was deleted, truncated or replaced fails with STORE_FAILED, and the next one continues after the last event that is there', async () => {
  for (const change of [
    (path: string) => rmSync(path),
    (path: string) => truncateSync(path, statSync(path).size - 10),
    (path: string) => writeFileSync(path, 'not an event file\n'),
    (path: string) => {
      const text = readFileSync(path)
      rmSync(path)
      writeFileSync(`${path}.other`, '')
      writeFileSync(path, text)
    },
  ]) {
    const { store, writer, file } = await scene()
    change(file('events-1.jsonl'))
    assert.throws(() => writer.append(['three'], { events: events(7, 7) }), {
      code: 'STORE_FAILED',
      message: /events-1\.jsonl was deleted, truncated or changed/,
    })
    await writer.release()
    const next = await store.open('x')
    const { eventSeq } = next
    await next.append([], { events: events(eventSeq + 1, eventSeq + 1) })
    assert.equal((await seqs(store, 1, eventSeq))[0], eventSeq + 1)
    const all = Array.from({ length: eventSeq + 1 }, (_, i) => i + 1)
    assert.deepEqual(await seqs(store, eventSeq + 1), all)
    await next.release()
  }
})

test('events whose lines are not complete are not read, and their numbers are used by the next writer', async () => {
  const { store, writer, file } = await scene()
  await writer.append(['three'], { events: events(7, 9) })
  truncateSync(file('1.jsonl'), statSync(file('1.jsonl')).size - 3) // as if the process had died there
  utimesSync(file('1.lock'), 1, 1)
  writeFileSync(file('1.lock'), 'unknown\n')
  utimesSync(file('1.lock'), 1, 1)
  assert.deepEqual(await seqs(store, 6), [1, 2, 3, 4, 5, 6])
  const next = await store.open('x')
  assert.equal(next.eventSeq, 6)
  const watching = seqs(store, 8)
  await next.append(['again'], { events: [{ text: '{"seq":7,"by":"next"}' }, ...events(8, 8)] })
  assert.deepEqual(await watching, [1, 2, 3, 4, 5, 6, 7, 8])
  assert.deepEqual((await store.read('x'))?.lines, ['one', 'two', 'again'])
})

test('events before a lock that was taken over are read when the process that took it over has died, though it wrote nothing', async () => {
  const { store, file } = await scene()
  utimesSync(file('1.lock'), 1, 1) // as if the first process did not renew its lease
  lockSession('x', file('.'), 60_000)
  const version = sizesOf('x', file('.'))
  const found: number[] = []
  for await (const { seq } of store.watch('x', { follow: false })) found.push(seq)
  assert.deepEqual(found, [], 'the next process has not said yet what counts')
  const watching = seqs(store, 6)
  utimesSync(file('2.lock'), 1, 1)
  assert.notEqual(sizesOf('x', file('.')), version)
  assert.deepEqual(await watching, [1, 2, 3, 4, 5, 6])
})

test('the event file is written again without transient events when they are most of it, and watchers continue', async () => {
  const { store, writer, file } = await scene()
  let seq = 6
  const sizes: number[] = []
  const other = fileStore(join(file('.'), '..'))
  const watching = [store, other].map((each) => ({ found: [] as number[], events: each.watch('x') }))
  const readers = watching.map(({ events }) => events[Symbol.asyncIterator]())
  for (let turn = 0; turn < 8; turn++) {
    await writer.append(['turn'], { events: [{ text: JSON.stringify({ seq: ++seq }), startsTurn: true }] })
    sizes.push(statSync(file('events-1.jsonl')).size)
    for (let i = 0; i < 5; i++) {
      await writer.append([], { events: events(seq + 1, seq + 10, { transient: true, length: 1_000 }) })
      seq += 10
    }
    await writer.append(['done'], { events: events(seq + 1, ++seq) })
    for (const [i, { found }] of watching.entries())
      while (found.at(-1) !== seq) found.push(((await readers[i]!.next()).value as { readonly seq: number }).seq)
  }
  assert.ok(Math.max(...sizes) < 5_000, sizes.join())
  const all = Array.from({ length: seq }, (_, i) => i + 1)
  for (const { found } of watching) assert.deepEqual(found, all)
  await Promise.all(readers.map((each) => each.return?.()))
  await writer.release()
  const next = await other.open('x')
  assert.equal(next.eventSeq, seq)
})

test('a session of a version without events is continued, and one that such a version has continued as well', async () => {
  const { store, writer, file } = await scene()
  await writer.release()
  edit(file('head.json'), /,"events":\{[^}]*\}/, '') // as it saves the session
  for (const from of [7, 8]) {
    const next = await store.open('x')
    assert.equal(next.eventSeq, from - 1)
    await next.append(['line'], { events: events(from, from) })
    await next.release()
  }
  assert.deepEqual(await seqs(store, 8), [1, 2, 3, 4, 5, 6, 7, 8])
  for (const name of readdirSync(file('.')).filter((each) => each.startsWith('events'))) rmSync(file(name))
  rmSync(file('head.json'))
  const again = await store.open('x')
  assert.deepEqual([again.eventSeq, again.length], [0, 4])
  await again.append([], { events: events(1, 1) })
  assert.deepEqual(await seqs(store, 1), [1])
})

test('a session that is opened again costs the same however many events it has', async (t) => {
  const { store, writer } = await scene()
  await writer.append(['many'], { events: events(7, 3_006, { length: 100 }) })
  await writer.release()
  const fs = process.getBuiltinModule('node:fs')
  const reads = t.mock.method(fs, 'readSync')
  const next = await store.open('x')
  const bytes = reads.mock.calls.reduce((sum, { result = 0 }) => sum + result, 0)
  assert.equal(next.eventSeq, 3_006)
  assert.ok(bytes < 10_000, String(bytes))
})

function edit(file: string, from: string | RegExp, to: string): void {
  const text = readFileSync(file, 'utf8')
  const changed = text.replace(from, to)
  assert.notEqual(changed, text)
  writeFileSync(file, changed)
}
