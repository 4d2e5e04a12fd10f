import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fingerprint, readPrinted } from './fingerprint.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-print-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const hashOf = (path: string): string | undefined => fingerprint(path)?.hash

describe('a fingerprint', () => {
  test('is another one at once when the content is, however little time and however alike', () => {
    const file = join(folder, 'quick.sh')
    const seen = new Set<string | undefined>()
    for (let i = 100; i < 300; i++) {
      writeFileSync(file, `echo ${i}`)
      seen.add(hashOf(file))
    }
    assert.equal(seen.size, 200)
  })

  test('is another one when a file that was known long has changed, whatever its times say', async () => {
    const file = join(folder, 'old.sh')
    const other = join(folder, 'other.sh')
    writeFileSync(file, 'echo one')
    writeFileSync(other, 'echo two')
    await sleep(2_100) // from here on it is remembered
    const { atime, mtime } = statSync(file)
    const first = hashOf(file)
    assert.equal(hashOf(file), first)
    writeFileSync(file, 'echo six')
    utimesSync(file, atime, mtime)
    const second = hashOf(file)
    renameSync(other, file)
    assert.equal(new Set([first, second, hashOf(file)]).size, 3)
  })

  test('is of the file behind a link, and there is none of what is no file', () => {
    const file = join(folder, 'real.sh')
    writeFileSync(file, 'echo')
    symlinkSync(file, join(folder, 'link.sh'))
    const { path, hash } = readPrinted(file)!
    assert.deepEqual(fingerprint(join(folder, 'link.sh')), { path, hash })
    for (const nothing of [folder, join(folder, 'gone.sh'), '/dev/null', `${folder}/${'x'.repeat(5_000)}`])
      assert.equal(fingerprint(nothing), undefined)
  })
})
