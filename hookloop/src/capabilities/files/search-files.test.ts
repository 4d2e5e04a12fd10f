import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { until } from '../../system/processes/processes.fixture.ts'
import { testIf } from '../../system/test-if.fixture.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { files } from './files.ts'
import { Workshop } from './files.fixture.ts'

const shop = new Workshop()
after(() => shop.remove())
shop.put('src/a.ts', 'import x from "y"\nconst TOKEN = 1\n')
shop.put('src/b.js', 'const token = 2\r\n// end\r\n')
shop.put('docs/readme.md', 'The token.\n')
shop.put('node_modules/pkg/index.js', 'const token = 3\n')
shop.put('image.png', Buffer.from([137, 80, 78, 71, 0, 1, 2]))
symlinkSync('../o', shop.path('out'))

test('matching lines are shown with file and line number', async () => {
  const { output } = await shop.call('search_files', { pattern: 'token' })
  assert.equal(output, 'docs/readme.md:1: The token.\nsrc/b.js:1: const token = 2')
})

test('ignore_case, path, glob and limit change what is found', async () => {
  const { outputs } = await shop.run([
    ['search_files', { pattern: 'token', ignore_case: true, glob: '*.{ts,js}' }],
    ['search_files', { pattern: 'token', path: 'docs' }],
    ['search_files', { pattern: '(?i)TOKEN', glob: 'src/**', limit: 1 }],
    ['search_files', { pattern: 'token', path: 'src/b.js' }],
    ['search_files', { pattern: 'token', path: 'node_modules' }],
    ['search_files', { pattern: 'end$', path: 'src' }],
    ['search_files', { pattern: 'nowhere' }],
  ])
  assert.deepEqual(outputs, [
    'src/a.ts:2: const TOKEN = 1\nsrc/b.js:1: const token = 2',
    'docs/readme.md:1: The token.',
    'src/a.ts:2: const TOKEN = 1\n[There are more than 1 matches. Narrow the search with path, glob or a longer pattern.]',
    'src/b.js:1: const token = 2',
    'node_modules/pkg/index.js:1: const token = 3',
    'src/b.js:2: // end',
    '(no matches)',
  ])
})

test('a literal pattern is plain text', async () => {
  shop.put('re/x.txt', 'a.c\nabc\n$1 (b)\n')
  const { outputs } = await shop.run([
    ['search_files', { pattern: 'a.c', path: 're', literal: true }],
    ['search_files', { pattern: '$1 (B)', path: 're', literal: true, ignore_case: true }],
  ])
  assert.deepEqual(outputs, ['re/x.txt:1: a.c', 're/x.txt:3: $1 (b)'])
})

test('of a long line only the part around the match is shown', async () => {
  shop.put('long/x.txt', `${'a'.repeat(10_000)}NEEDLE${'b'.repeat(10_000)}\n`)
  const { output } = await shop.call('search_files', { pattern: 'NEED..', path: 'long' })
  assert.match(output, /^long\/x\.txt:1: … a{100}NEEDLEb{194} …$/)
})

test('an invalid pattern is reported', async () => {
  const { outputs, run } = await shop.run([
    ['search_files', { pattern: '(' }],
    ['search_files', { pattern: 'a(?=b)' }],
    ['search_files', { pattern: 'a\nb' }],
    ['search_files', { pattern: '(a?){900}(b?){900}' }],
    ['search_files', {}],
    ['search_files', { pattern: 'x', path: 'none' }],
  ])
  assert.match(outputs[0]!, /The pattern is not valid: missing (?:closing|argument)/)
  assert.match(outputs[1]!, /without lookaround/)
  assert.match(outputs[2]!, /cannot contain a line break/)
  assert.match(outputs[3]!, /too large/)
  assert.match(outputs[4]!, /Give a pattern, a glob or both/)
  assert.match(outputs[5]!, /The file or folder none does not exist/)
  assert.equal(run.status, 'completed')
})

test('files that are too large and folders that are too deep are left out', async () => {
  shop.put('limits/large.txt', `needle\n${'x'.repeat(2_000)}`)
  shop.put('limits/a/b/c/deep.txt', 'needle\n')
  shop.put('limits/small.txt', 'needle\n')
  const options = { maxFileBytes: 1_000, maxDepth: 3 }
  const { output } = await shop.call('search_files', { pattern: 'needle', path: 'limits' }, options)
  assert.equal(output, 'limits/small.txt:1: needle')
})

test('a search that reaches its size or time limit says so', async () => {
  for (let i = 0; i < 50; i++) shop.put(`bytes/f${i}.txt`, `${'x'.repeat(1_000)}\n`)
  const bytes = await shop.call('search_files', { pattern: 'y', path: 'bytes' }, { maxSearchBytes: 10_000 })
  assert.match(bytes.output, /stopped at its size limit/)
  for (let i = 0; i < 3_000; i++) writeFileSync(shop.path(`bytes/g${i}.txt`), 'z\n')
  const time = await shop.call('search_files', { pattern: 'y', path: 'bytes' }, { timeoutMs: 10 })
  assert.match(time.output, /search timed out/)
})

testIf(process.platform === 'linux')('a cancelled search ends, and no file stays open', async () => {
  mkdirSync(shop.path('huge'))
  for (let i = 0; i < 5_000; i++) writeFileSync(shop.path(`huge/f${i}`), `line ${i}\n`)
  const openFiles = (): number => readdirSync('/proc/self/fd').length
  const before = openFiles()
  const model = scriptedModel([
    { toolCalls: [{ name: 'search_files', args: { pattern: 'nowhere at all', path: 'huge' } }] },
  ])
  const agent = createAgent({ model, use: [files({ root: shop.inside, timeoutMs: 60_000 })] })
  const stop = new AbortController()
  const running = agent.run('Go.', { signal: stop.signal })
  assert.ok(await until(() => openFiles() > before)) // the search holds its folder open
  stop.abort()
  const run = await running
  assert.equal(run.status, 'cancelled')
  assert.ok(await until(() => openFiles() <= before))
})
