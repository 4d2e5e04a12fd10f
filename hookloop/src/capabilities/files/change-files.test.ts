import assert from 'node:assert/strict'
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { approval } from '../approval.ts'
import { Workshop, type Call } from './files.fixture.ts'

const shop = new Workshop()
after(() => shop.remove())

const read = (path: string): Call => ['read_file', { path }]
const edit = (path: string, old: string, now: string, more: { replace_all?: boolean } = {}): Call => [
  'edit_file',
  { path, old_string: old, new_string: now, ...more },
]
const write = (path: string, content: string, more: { overwrite?: boolean } = {}): Call => [
  'write_file',
  { path, content, ...more },
]
const contentOf = (name: string): string => readFileSync(shop.path(name), 'utf8')

test('edit_file changes the text and returns a diff', async () => {
  shop.put('a.ts', 'const a = 1\nconst b = 2\n')
  const { outputs } = await shop.run([read('a.ts'), edit('a.ts', 'b = 2', 'b = 3')])
  assert.equal(contentOf('a.ts'), 'const a = 1\nconst b = 3\n')
  assert.match(
    outputs[1]!,
    /^Edited a\.ts \(1 place\)\.\n\n--- a\.ts\n\+\+\+ a\.ts\n@@ -1,2 \+1,2 @@\n const a = 1\n-const b = 2\n\+const b = 3$/,
  )
})

test('several edits need no reading in between', async () => {
  shop.put('b.txt', '0')
  const edits = Array.from({ length: 20 }, (_, i) => edit('b.txt', String(i), String(i + 1)))
  const { executions } = await shop.run([read('b.txt'), ...edits])
  assert.deepEqual(new Set(executions.map(({ status }) => status)), new Set(['ok']))
  assert.equal(contentOf('b.txt'), '20')
})

test('a file that was not read is not edited, unless readFirst is false', async () => {
  shop.put('unread.txt', 'x')
  const { status, output } = await shop.call(...edit('unread.txt', 'x', 'y'))
  assert.deepEqual([status, output], ['failed', 'unread.txt was not read yet. Read it first.'])
  await shop.call(...edit('unread.txt', 'x', 'y'), { readFirst: false })
  assert.equal(contentOf('unread.txt'), 'y')
})

test('an existing file is replaced if it was read, or with overwrite', async () => {
  shop.put('there.txt', 'old\n')
  const refused = await shop.call(...write('there.txt', 'new\n'))
  assert.match(refused.output, /exists and was not read\. Read it first, or set overwrite/)
  assert.equal(contentOf('there.txt'), 'old\n')
  const { outputs } = await shop.run([read('there.txt'), write('there.txt', 'new\n')])
  assert.match(outputs[1]!, /^Replaced there\.txt \(4 bytes\)\.\n\n--- there\.txt\n[^]*-old\n\+new$/)
  await shop.call(...write('there.txt', 'newer\n', { overwrite: true }))
  assert.equal(contentOf('there.txt'), 'newer\n')
})

test('a file that was changed after it was read is not overwritten', async () => {
  shop.put('stale.txt', 'one')
  const { outputs } = await shop.run([
    read('stale.txt'),
    () => writeFileSync(shop.path('stale.txt'), 'two'),
    write('stale.txt', 'three', { overwrite: true }),
  ])
  assert.match(outputs[1]!, /was changed since you read it/)
  assert.equal(contentOf('stale.txt'), 'two')
})

test('a new file is created with its folders, and can be edited at once', async () => {
  const { outputs } = await shop.run([write('new/deep/file.txt', 'hello'), edit('new/deep/file.txt', 'hello', 'bye')])
  assert.equal(outputs[0], 'Created new/deep/file.txt (5 bytes).')
  assert.equal(contentOf('new/deep/file.txt'), 'bye')
})

test('the mode stays the same, and no temporary file is left', async () => {
  shop.put('mode/run.sh', '#!/bin/sh\necho a\n', 0o755)
  chmodSync(shop.path('mode/run.sh'), 0o750)
  await shop.run([read('mode/run.sh'), edit('mode/run.sh', 'echo a', 'echo b')])
  assert.equal(statSync(shop.path('mode/run.sh')).mode & 0o7777, 0o750)
  assert.deepEqual(readdirSync(shop.path('mode')), ['run.sh'])
})

test('an edit through a link changes its target and not the link', async () => {
  shop.put('real.txt', 'one')
  symlinkSync('real.txt', shop.path('link.txt'))
  await shop.run([read('link.txt'), edit('link.txt', 'one', 'two')])
  assert.equal(contentOf('real.txt'), 'two')
  assert.ok(lstatSync(shop.path('link.txt')).isSymbolicLink())
})

test('half a character is rejected', async () => {
  shop.put('half.txt', 'x')
  const { outputs } = await shop.run([write('lone.txt', 'a\uD800b'), read('half.txt'), edit('half.txt', 'x', '\uDC00')])
  assert.match(outputs[0]!, /half a character/)
  assert.match(outputs[2]!, /half a character/)
  assert.equal(contentOf('half.txt'), 'x')
})

test('files that are too large are neither written nor edited', async () => {
  shop.put('large.txt', 'x'.repeat(2_000))
  const { outputs } = await shop.run(
    [
      read('large.txt'),
      edit('large.txt', 'x', 'y', { replace_all: true }),
      write('larger.txt', 'x'.repeat(1_001)),
      write('grows.txt', 'ab'),
      edit('grows.txt', 'a', 'x'.repeat(1_000)),
    ],
    { maxFileBytes: 1_000 },
  )
  for (const at of [1, 2, 4]) assert.match(outputs[at]!, /larger than 1000 bytes/)
  assert.equal(contentOf('grows.txt'), 'ab')
})

test('package.json needs approval', async () => {
  const refused = await shop.call(...write('package.json', '{}'), { use: [approval(() => ({ block: 'No.' }))] })
  assert.deepEqual([refused.status, refused.output], ['blocked', 'No.'])
  const asked: string[] = []
  const use = [
    approval(({ message, by }) => {
      asked.push(`${by}: ${message}`)
      return 'allow'
    }),
  ]
  await shop.call(...write('package.json', '{}'), { use })
  assert.deepEqual(asked, ['files.protect: Write to package.json? Its content may be run later.'])
  assert.equal(contentOf('package.json'), '{}')
})

test('an allow rule overrides protect and ask', async () => {
  const { executions } = await shop.run([write('.vscode/settings.json', '{}'), write('ok/package.json', '{}')], {
    allow: ['.vscode', 'ok/package.json'],
  })
  assert.deepEqual(
    executions.map(({ status }) => status),
    ['ok', 'ok'],
  )
})

test('without write there is no tool that writes', async () => {
  const { output } = await shop.call(...write('x.txt', 'x'), { write: false })
  assert.match(output, /There is no tool "write_file"/)
})
