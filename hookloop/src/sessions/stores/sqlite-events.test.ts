import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { sqliteStore } from './sqlite-store.ts'
import type { SessionStore } from './store.ts'
import { EventWriter } from '../log/event-writer.fixture.ts'
import { watchSession } from '../log/watch-session.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-sqlite-events-'))
after(() => rmSync(root, { recursive: true, force: true }))

const newPath = (): string => join(mkdtempSync(join(root, 'db-')), 'x.db')

/** A database with the session x, which has six events. */
async function scene(): Promise<{ path: string; store: SessionStore }> {
  const path = newPath()
  const store = sqliteStore(path)
  const writer = await EventWriter.open(store)
  await writer.add(1, 2, 3)
  await writer.add(4, 5, 6)
  await writer.release()
  return { path, store }
}

suite('a watcher of a database', () => {
  const losses: Record<string, (path: string) => void> = {
    'whose file is deleted': (path) => rmSync(path),
    'whose file is replaced by a copy': (path) => {
      copyFileSync(path, `${path}.copy`)
      renameSync(`${path}.copy`, path)
    },
  }
  for (const [what, lose] of Object.entries(losses))
    test(`${what} rejects with STORE_FAILED`, async () => {
      const { path, store } = await scene()
      const found: string[] = []
      const reading = (async () => {
        for await (const event of watchSession(store, 'x')) {
          if (event.type === 'answered') found.push(event.approval)
          if (found.length === 6) lose(path)
        }
      })()
      await assert.rejects(reading, { code: 'STORE_FAILED', message: /deleted|replaced/ })
      assert.deepEqual(found, ['1', '2', '3', '4', '5', '6'])
      await store.close().catch(() => undefined)
    })
})

test('a store with a watcher keeps a process alive, and one without does not', async () => {
  const { spawnSync } = await import('node:child_process')
  const { fileURLToPath } = await import('node:url')
  const { path, store } = await scene()
  await store.close()
  const [stores, watching] = ['sqlite-store.ts', '../log/watch-session.ts'].map((file) =>
    fileURLToPath(new URL(file, import.meta.url)),
  )
  const script = `
    const { sqliteStore } = await import(${JSON.stringify(stores)})
    const { watchSession } = await import(${JSON.stringify(watching)})
    const store = sqliteStore(${JSON.stringify(path)})
    const leave = new AbortController()
    process.on('SIGTERM', () => leave.abort())
    for await (const { approval } of watchSession(store, 'x', { signal: leave.signal })) {
      console.log(approval)
      if (approval === '6') setImmediate(() => process.kill(process.pid, 'SIGTERM'))
    }
    console.log('left')`
  const { stdout, status } = spawnSync(
    process.execPath,
    ['--conditions=hookloop-source', '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  )
  assert.deepEqual([stdout.split('\n'), status], [['1', '2', '3', '4', '5', '6', 'left', ''], 0])
})
