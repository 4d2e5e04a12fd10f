import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { storeContract } from '../../testing/store-contract.ts'
import { fileStore } from './file-store.ts'
import { processContract } from './store-processes.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-files-'))
after(() => rmSync(folder, { recursive: true, force: true }))

storeContract('fileStore', (place, leaseMs = 30_000) => fileStore(join(folder, place), { leaseMs }), {
  leaseMs: 1_500,
})

const shared = join(folder, 'shared')
const sharedStore = fileStore(shared)
processContract('fileStore', () => ({
  kind: 'file',
  place: shared,
  store: sharedStore,
  expireLock(id) {
    for (const name of readdirSync(join(shared, id))) {
      if (name.endsWith('.lock')) utimesSync(join(shared, id, name), 1, 1)
    }
  },
}))

test('a session that is deleted and created again while it is read is read again', async (t) => {
  const store = fileStore(join(folder, 'moving'))
  const writer = await store.open('moving', { create: true })
  await writer.append(['one'])
  const fs = process.getBuiltinModule('node:fs')
  const real = fs.openSync
  const elsewhere = (path: string, flags: number): number => real(path.replace(/jsonl$/, 'gone'), flags)
  t.mock.method(fs, 'openSync', elsewhere, { times: 1 })
  assert.deepEqual(await store.read('moving'), { head: {}, lines: ['one'] })
  await writer.release()
})
