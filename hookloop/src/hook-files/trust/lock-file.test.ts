import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { lockFile } from './lock-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-lock-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('a file that is locked cannot be locked again until it is unlocked, stays empty, and is for its owner alone', () => {
  const path = join(folder, 'deeper', 'file.lock')
  const unlock = lockFile(path, 5_000)
  assert.equal(lockFile(path, 20), undefined)
  unlock?.()
  const again = lockFile(path, 20)
  again?.()
  const { size, mode } = statSync(path)
  assert.deepEqual([typeof unlock, typeof again, size, mode & 0o777], ['function', 'function', 0, 0o600])
})

test('a file that is not a database, and a folder, cannot be locked', () => {
  const path = join(folder, 'text')
  writeFileSync(path, 'x'.repeat(9_000))
  assert.throws(() => lockFile(path, 20), /not a database/)
  assert.throws(() => lockFile(folder, 20), { code: 'STORE_FAILED', message: /is not a file/ })
})
