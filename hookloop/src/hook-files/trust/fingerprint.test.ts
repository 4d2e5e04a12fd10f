import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fingerprint, readWithFingerprint } from './fingerprint.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-print-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const hashOf = (path: string): string | undefined => fingerprint(path)?.hash

describe('fingerprint', () => {
  test('a fingerprint changes at once with the content, also for fast changes of the same size', () => {
    const file = join(folder, 'quick.sh')
    const seen = new Set<string | undefined>()
    for (let i = 100; i < 300; i++) {
      writeFileSync(file, `echo ${i}`)
      seen.add(hashOf(file))
    }
    assert.equal(seen.size, 200)
  })

  test('a cached fingerprint changes with the file, also if its times are set back', (t) => {
    const file = join(folder, 'old.sh')
    const other = join(folder, 'other.sh')
    writeFileSync(file, 'echo one')
    writeFileSync(other, 'echo two')
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 10_000 }) // old files are cached
    const { atime, mtime } = statSync(file)
    const first = hashOf(file)
    assert.equal(hashOf(file), first)
    writeFileSync(file, 'echo six')
    utimesSync(file, atime, mtime)
    const second = hashOf(file)
    renameSync(other, file)
    assert.equal(new Set([first, second, hashOf(file)]).size, 3)
  })

  test('the fingerprint of a link is that of its target, and only files have one', () => {
    const file = join(folder, 'real.sh')
    writeFileSync(file, 'echo')
    symlinkSync(file, join(folder, 'link.sh'))
    const { path, hash } = readWithFingerprint(file)!
    assert.deepEqual(fingerprint(join(folder, 'link.sh')), { path, hash })
    for (const nothing of [folder, join(folder, 'gone.sh'), '/dev/null', `${folder}/${'x'.repeat(5_000)}`])
      assert.equal(fingerprint(nothing), undefined)
  })
})
