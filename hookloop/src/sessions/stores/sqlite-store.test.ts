import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { storeContract } from '../../testing/store-contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import { processContract } from './store-processes.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-sqlite-'))
after(() => rmSync(folder, { recursive: true, force: true }))

storeContract('sqliteStore', (place, leaseMs = 30_000) => sqliteStore(join(folder, `${place}.db`), { leaseMs }), {
  leaseMs: 1_500,
})

const shared = join(folder, 'shared.db')
const sharedStore = sqliteStore(shared)
after(() => sharedStore.close())
processContract('sqliteStore', () => ({
  kind: 'sqlite',
  place: shared,
  store: sharedStore,
  expireLock(id) {
    const database = new DatabaseSync(shared, { timeout: 5_000 })
    database.prepare('UPDATE sessions SET expires_at = 1 WHERE id = ?').run(id)
    database.close()
  },
}))

/** The rows of a database file. */
function rowsIn(path: string): readonly { readonly n: number; readonly content: string }[] {
  const database = new DatabaseSync(path)
  const rows = database.prepare('SELECT n, content FROM lines ORDER BY session, n').all()
  database.close()
  return rows.map(({ n, content }) => ({ n: Number(n), content: String(content) }))
}

test('sqliteStore: one append is one row, or several if it is long', async () => {
  const path = join(folder, 'rows.db')
  const store = sqliteStore(path)
  const writer = await store.open('rows', { create: true })
  const long = Array.from({ length: 200 }, (_, i) => `${i} ${'x'.repeat(1_000)}`)
  await writer.append(['one', '', 'three'])
  await writer.append(long)
  await writer.append(['y'.repeat(100_000), 'last'], { head: { status: 'idle' } })
  await store.close()
  const rows = rowsIn(path)
  assert.deepEqual(rows[0], { n: 0, content: 'one\n\nthree' })
  assert.ok(rows.length > 8 && rows.length < 20, `${rows.length} rows`)
  const again = sqliteStore(path)
  const kept = await again.read('rows')
  await again.close()
  assert.deepEqual(kept, {
    head: { status: 'idle' },
    lines: ['one', '', 'three', ...long, 'y'.repeat(100_000), 'last'],
  })
})

test('sqliteStore: a session is listed with the time of its last append, once it is unlocked', async () => {
  const store = sqliteStore(join(folder, 'times.db'))
  const writer = await store.open('times', { create: true })
  await writer.append(['one'], { head: { status: 'running' } })
  await new Promise((resolve) => setTimeout(resolve, 20))
  const before = Date.now()
  await writer.append(['two'], { head: { status: 'running', steps: 1 } })
  await writer.release()
  const [listed] = await store.list()
  await store.close()
  assert.ok(listed!.updatedAt >= before, `${listed!.updatedAt} is before ${before}`)
})

test('several processes can create the same database at the same time', async () => {
  const code = `
    import { sqliteStore } from ${JSON.stringify(new URL('sqlite-store.ts', import.meta.url).href)}
    const [path, at] = process.argv.slice(1)
    while (Date.now() < Number(at));
    const store = sqliteStore(path)
    console.log((await store.list()).length)
    await store.close()`
  for (let round = 0; round < 6; round++) {
    const path = join(folder, `together-${round}.db`)
    if (round % 2 === 1) writeFileSync(path, '', { mode: 0o600 })
    const args = ['--conditions=hookloop-source', '--input-type=module', '-e', code, path, String(Date.now() + 1_000)]
    const all = await Promise.all(Array.from({ length: 5 }, () => promisify(execFile)(process.execPath, args)))
    assert.deepEqual(
      all.map(({ stdout }) => stdout),
      Array.from({ length: 5 }, () => '0\n'),
    )
  }
})
