import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import { after, test } from 'node:test'
import { Workshop } from './files.fixture.ts'

const shop = new Workshop()
after(() => shop.remove())
shop.put('tree/b.txt', 'xy')
shop.put('tree/a/one.txt', '')
shop.put('tree/a/deep/two.txt', 'x')
shop.put('tree/node_modules/pkg/index.js', '')
symlinkSync('../../o', shop.path('tree/out'))

test('list_dir shows files with sizes, and folders', async () => {
  const { output } = await shop.call('list_dir', { path: 'tree' })
  assert.equal(output, 'a/\nb.txt\t2\nnode_modules/ (not listed)\nout (link)')
})

test('with a depth, subfolders are listed too, but links and skipped folders are not entered', async () => {
  const { output } = await shop.call('list_dir', { path: 'tree', depth: 5 })
  const expected = [
    'a/',
    'a/deep/',
    'a/deep/two.txt\t1',
    'a/one.txt\t0',
    'b.txt\t2',
    'node_modules/ (not listed)',
    'out (link)',
  ]
  assert.deepEqual(output.split('\n'), expected)
})

test('at most maxEntries are shown, with the number of the others', async () => {
  for (let i = 0; i < 30; i++) shop.put(`many/f${String(i).padStart(2, '0')}`, '')
  const { output } = await shop.call('list_dir', { path: 'many' }, { maxEntries: 10 })
  assert.match(output, /^f00\t0\n[^]*f09\t0\n\[20 more entries are not shown\./)
})

test('an empty folder, a file and a missing path have different messages', async () => {
  mkdirSync(shop.path('empty'))
  const { outputs } = await shop.run([
    ['list_dir', { path: 'empty' }],
    ['list_dir', { path: 'tree/b.txt' }],
    ['list_dir', { path: 'none' }],
  ])
  assert.deepEqual(outputs, [
    '(empty folder)',
    'tree/b.txt is not a folder. Use read_file.',
    'The folder none does not exist.',
  ])
})

test('hidden entries are not listed at any depth', async () => {
  shop.put('tree/a/.env', 'SECRET')
  const { output } = await shop.call('list_dir', { path: 'tree', depth: 5 }, { hide: ['.env*', 'tree/a/deep'] })
  assert.deepEqual(output.split('\n').slice(0, 2), ['a/', 'a/one.txt\t0'])
})
