import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, test } from 'node:test'
import { Workshop } from './files.fixture.ts'
import { bestLookup, HeldDirectory } from './held-directory.ts'
import { markOf } from './reading.ts'
import { makeFolders, replaceFile, type Before } from './replace-file.ts'

let shop: Workshop
let directory: HeldDirectory
beforeEach(async () => {
  shop = new Workshop()
  shop.put('file', 'old')
  directory = await HeldDirectory.open(shop.inside, bestLookup)
})
afterEach(async () => {
  await directory.close()
  shop.remove()
})

const content = Buffer.from('new')
const { signal } = new AbortController()

function beforeOf(name: string): Before {
  const stats = statSync(shop.path(name))
  return { mode: stats.mode, owner: stats, mark: markOf(stats) }
}

test('a file is replaced by another one, and nothing else is left', async () => {
  const { ino } = statSync(shop.path('file'))
  await replaceFile(directory, 'file', { content, before: beforeOf('file'), signal })
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'new')
  assert.notEqual(statSync(shop.path('file')).ino, ino)
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})

test('a write that is cancelled leaves the old content and nothing else', async () => {
  const aborted = AbortSignal.abort(new Error('cancelled'))
  await assert.rejects(
    replaceFile(directory, 'file', { content, before: beforeOf('file'), signal: aborted }),
    /cancelled/,
  )
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'old')
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})

test('what somebody saved after the file was read is not overwritten', async () => {
  const before = beforeOf('file')
  writeFileSync(shop.path('file'), 'theirs')
  await assert.rejects(
    replaceFile(directory, 'file', { content, before, signal }),
    /changed by somebody else meanwhile/,
  )
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'theirs')
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})

test('a name that was taken meanwhile is left to whoever took it', async () => {
  await assert.rejects(replaceFile(directory, 'file', { content, before: undefined, signal }), /was made meanwhile/)
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'old')
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})

test('folders are made in one another, those that are there are used, and a file is none', async () => {
  const made = await makeFolders(directory, ['a', 'b'])
  const again = await makeFolders(directory, ['a', 'b', 'c'])
  assert.equal(made.realPath, shop.path('a', 'b'))
  assert.equal(again.realPath, shop.path('a', 'b', 'c'))
  await Promise.all([made.close(), again.close()])
  await assert.rejects(makeFolders(directory, ['file', 'x']), { code: 'ENOTDIR' })
})
