import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import type { AgentEvent } from '../../state/event.ts'
import { sqliteStore } from './sqlite-store.ts'
import type { SessionStore, StoredEvent } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-sqlite-events-'))
after(() => rmSync(root, { recursive: true, force: true }))

const newPath = (): string => join(mkdtempSync(join(root, 'db-')), 'x.db')

function events(from: number, to: number, filler = ''): readonly StoredEvent[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ({ text: JSON.stringify({ seq: from + i, filler }) }))
}

async function seqs(watched: AsyncIterable<AgentEvent>, count: number): Promise<readonly number[]> {
  const found: number[] = []
  for await (const { seq } of watched) if (found.push(seq) === count) break
  return found
}

/** A database with the session x, of six events in two rows. */
async function scene(): Promise<{ path: string; store: SessionStore }> {
  const path = newPath()
  const store = sqliteStore(path)
  const writer = await store.open('x', { create: true })
  await writer.append(['one'], { events: events(1, 3) })
  await writer.append(['two'], { events: events(4, 6) })
  await writer.release()
  return { path, store }
}

function sql(path: string, text: string): void {
  const database = new DatabaseSync(path)
  database.exec(text)
  database.close()
}

suite('a watcher of a database that was changed', () => {
  const PLACE = '(1 << 32)'
  const changes: Record<string, string> = {
    'that has an empty row': `UPDATE events SET text = '' WHERE place = ${PLACE} + 4`,
    'that has a text without structure': `UPDATE events SET text = 'x' || char(10) || char(10) WHERE place = ${PLACE} + 4`,
    'that has a row in the place of another': `UPDATE events SET place = place + 1 WHERE place = ${PLACE} + 4`,
    'that has a row inside another': `INSERT INTO events VALUES (${PLACE} + 5, 0, '{"seq":5}')`,
    'that has a NUL in an event': `UPDATE events SET text = char(0) || text WHERE place = ${PLACE} + 4`,
    'that has a row at the largest number': `UPDATE events SET place = ${PLACE} + 4294967295 WHERE place = ${PLACE} + 4`,
  }
  for (const [what, change] of Object.entries(changes))
    test(`${what} rejects with SESSION_CORRUPT after the events before, and the session can still be read`, async () => {
      const { path, store } = await scene()
      sql(path, change)
      const found: number[] = []
      const reading = (async () => {
        for await (const { seq } of store.watch('x')) found.push(seq)
      })()
      await assert.rejects(reading, { code: 'SESSION_CORRUPT', message: /The session "x" cannot be read: its event/ })
      assert.deepEqual(found.slice(0, 3), [1, 2, 3])
      assert.deepEqual((await store.read('x'))?.lines, ['one', 'two'])
      await store.close()
    })

  const losses: Record<string, (path: string) => void> = {
    'whose file is deleted': (path) => rmSync(path),
    'whose file is replaced by a copy': (path) => {
      copyFileSync(path, `${path}.copy`)
      renameSync(`${path}.copy`, path)
    },
    'whose file is truncated': (path) => truncateSync(path, 1_024),
    'whose log is deleted': (path) => rmSync(`${path}-wal`),
  }
  for (const [what, lose] of Object.entries(losses))
    test(`${what} rejects with STORE_FAILED`, async () => {
      const { path, store } = await scene()
      const found: number[] = []
      const reading = (async () => {
        for await (const { seq } of store.watch('x')) {
          found.push(seq)
          if (seq === 6) lose(path)
        }
      })()
      await assert.rejects(reading, { code: 'STORE_FAILED', message: /deleted|replaced|truncated/ })
      assert.deepEqual(found, [1, 2, 3, 4, 5, 6])
      await store.close().catch(() => undefined)
    })
})

test('an append is one row of lines and one of events, and transient events have rows of their own', async () => {
  const { path, store } = await scene()
  const writer = await store.open('x')
  const mixed = [...events(7, 8), ...events(9, 10).map((each) => ({ ...each, transient: true })), ...events(11, 11)]
  await writer.append(['three', 'four'], { events: mixed })
  await writer.append([], { events: events(12, 15, 'é'.repeat(20_000)) })
  await store.close()
  const database = new DatabaseSync(path)
  const rows = database.prepare('SELECT place - (1 << 32) AS n, transient FROM events').all()
  database.close()
  assert.deepEqual(
    rows.map(({ n, transient }) => `${Number(n)} ${Number(transient)}`),
    ['1 0', '4 0', '7 0', '9 1', '11 0', '12 0', '13 0', '14 0', '15 0'],
  )
})

test('a thousand watchers share one timer and one connection, and each gets every event', async (t) => {
  const path = newPath()
  const [mine, other] = [sqliteStore(path), sqliteStore(path)]
  const writer = await mine.open('x', { create: true })
  await writer.append([], { events: events(1, 1) })
  const timers = t.mock.method(globalThis, 'setTimeout')
  const watching = Array.from({ length: 1_000 }, (_, i) => seqs(other.watch(i % 2 === 0 ? 'x' : 'y'), 3))
  const second = await mine.open('y', { create: true })
  for (const seq of [2, 3]) await writer.append([], { events: events(seq, seq) })
  for (const seq of [1, 2, 3]) await second.append([], { events: events(seq, seq) })
  for (const found of await Promise.all(watching)) assert.deepEqual(found, [1, 2, 3])
  assert.ok(timers.mock.callCount() < 1_000, String(timers.mock.callCount()))
  const before = timers.mock.callCount()
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(timers.mock.callCount(), before, 'without a watcher there is no timer')
  await mine.close()
  await other.close()
})

test('a slow watcher has read no more than a page ahead', async (t) => {
  const path = newPath()
  const store = sqliteStore(path)
  const writer = await store.open('x', { create: true })
  const filler = 'x'.repeat(1_000)
  for (let from = 1; from <= 2_000; from += 20) await writer.append([], { events: events(from, from + 19, filler) })
  const parse = t.mock.method(JSON, 'parse')
  const reader = store.watch('x')[Symbol.asyncIterator]()
  for (let i = 0; i < 3; i++) await reader.next()
  assert.equal(parse.mock.callCount(), 3, 'an event is parsed when it is needed')
  parse.mock.restore()
  let rest = 3
  const { StatementSync } = process.getBuiltinModule('node:sqlite')
  const reads = t.mock.method(StatementSync.prototype, 'iterate')
  for (; rest < 2_000; rest++) await reader.next()
  const pages = reads.mock.callCount()
  assert.ok(pages > 20 && pages < 100, String(pages))
  await reader.return?.()
  await store.close()
})

test('a store with a watcher keeps a process alive, and one without does not', async () => {
  const { spawnSync } = await import('node:child_process')
  const { fileURLToPath } = await import('node:url')
  const { path, store } = await scene()
  await store.close()
  const module = fileURLToPath(new URL('sqlite-store.ts', import.meta.url))
  const script = `
    const { sqliteStore } = await import(${JSON.stringify(module)})
    const store = sqliteStore(${JSON.stringify(path)})
    const leave = new AbortController()
    process.on('SIGTERM', () => leave.abort())
    for await (const { seq } of store.watch('x', { signal: leave.signal })) {
      console.log(seq)
      if (seq === 6) setImmediate(() => process.kill(process.pid, 'SIGTERM'))
    }
    console.log('left')`
  const { stdout, status } = spawnSync(
    process.execPath,
    ['--conditions=hookloop-source', '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  )
  assert.deepEqual([stdout.split('\n'), status], [['1', '2', '3', '4', '5', '6', 'left', ''], 0])
})
