import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, test } from 'node:test'
import { Workshop } from './files.fixture.ts'
import { bestLookup, OpenFolder } from './open-folder.ts'
import { replaceFile } from './replace-file.ts'

let shop: Workshop
let directory: OpenFolder
beforeEach(async () => {
  shop = new Workshop()
  shop.put('file', 'old')
  directory = await OpenFolder.open(shop.inside, bestLookup)
})
afterEach(async () => {
  await directory.close()
  shop.remove()
})

const content = Buffer.from('new')
const { signal } = new AbortController()

test('a cancelled write leaves the old content and no temporary file', async () => {
  const aborted = AbortSignal.abort(new Error('cancelled'))
  await assert.rejects(
    replaceFile(directory, 'file', { content, before: statSync(shop.path('file')), signal: aborted }),
    /cancelled/,
  )
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'old')
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})

test('a file that was saved after it was read is not overwritten', async () => {
  const before = statSync(shop.path('file'))
  writeFileSync(shop.path('file'), 'theirs')
  await assert.rejects(
    replaceFile(directory, 'file', { content, before, signal }),
    /changed by another process in the meantime/,
  )
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'theirs')
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})

/** A signal that is looked at when the new content is written, before it gets its name. */
const during = (exchange: () => void): AbortSignal =>
  Object.assign(new AbortController().signal, { throwIfAborted: exchange })

test('a file that is exchanged for a link during a write is not written, and neither is the target of the link', async () => {
  const before = statSync(shop.path('file'))
  const exchanged = during(() => {
    renameSync(shop.path('file'), shop.path('moved'))
    symlinkSync(shop.secret, shop.path('file'))
  })
  await assert.rejects(
    replaceFile(directory, 'file', { content, before, signal: exchanged }),
    /changed by another process in the meantime/,
  )
  assert.equal(readFileSync(shop.path('moved'), 'utf8'), 'old')
  assert.match(readFileSync(shop.secret, 'utf8'), /CANARY/)
  assert.deepEqual(readdirSync(shop.inside).toSorted(), ['file', 'moved'])
})

test('a folder that is moved or exchanged for a link during a write gets no file, and neither does the target of the link', async () => {
  mkdirSync(shop.path('d'))
  const folder = await directory.child('d')
  const exchanged = during(() => {
    renameSync(shop.path('d'), shop.path('protected'))
    symlinkSync(shop.outside, shop.path('d'))
  })
  const written = replaceFile(folder, 'new', { content, before: undefined, signal: exchanged })
  await assert.rejects(written, /moved or replaced in the meantime/)
  await folder.close()
  assert.deepEqual([readdirSync(shop.path('protected')), readdirSync(shop.outside)], [[], ['secret']])
  await assert.rejects(directory.child('d'), { code: 'ENOTDIR' })
})

test('a file that was created in the meantime is not replaced', async () => {
  await assert.rejects(
    replaceFile(directory, 'file', { content, before: undefined, signal }),
    /was created in the meantime/,
  )
  assert.equal(readFileSync(shop.path('file'), 'utf8'), 'old')
  assert.deepEqual(readdirSync(shop.inside), ['file'])
})
