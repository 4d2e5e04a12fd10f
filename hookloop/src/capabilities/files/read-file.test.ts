import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Workshop } from './files.fixture.ts'

const shop = new Workshop()
after(() => shop.remove())

test('lines are shown with their numbers', async () => {
  shop.put('three.txt', 'one\n\n\tthree\n')
  const { output } = await shop.call('read_file', { path: 'three.txt' })
  assert.equal(output, '     1\tone\n     2\t\n     3\t\tthree')
})

test('a long file is shown in pages, each of which says how to continue', async () => {
  shop.put('long.txt', Array.from({ length: 450 }, (_, i) => `line ${i + 1}\n`).join(''))
  const { outputs } = await shop.run([
    ['read_file', { path: 'long.txt' }],
    ['read_file', { path: 'long.txt', offset: 200 }],
    ['read_file', { path: 'long.txt', offset: 400, limit: 50 }],
    ['read_file', { path: 'long.txt', offset: 449 }],
    ['read_file', { path: 'long.txt', offset: 450 }],
  ])
  assert.match(
    outputs[0]!,
    /^ {5}1\tline 1\n[^]* 200\tline 200\n\n\[Lines 1 to 200 of 450\. Use offset=200 to continue\.\]$/,
  )
  assert.match(outputs[1]!, /^ {3}201\tline 201\n[^]*Use offset=400 to continue\.\]$/)
  assert.match(outputs[2]!, /^ {3}401\t[^]* {3}450\tline 450$/)
  assert.equal(outputs[3], '   450\tline 450')
  assert.match(outputs[4]!, /has 450 lines, so offset 450 is past its end/)
})

test('a page has at most maxReadBytes, and the next one starts where it ended', async () => {
  shop.put('wide.txt', Array.from({ length: 100 }, (_, i) => `${i} ${'x'.repeat(1_000)}\n`).join(''))
  const seen: number[] = []
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const { output } = await shop.call('read_file', { path: 'wide.txt', offset })
    assert.ok(output.length < 34_000)
    seen.push(...[...output.matchAll(/^ *(\d+)\t/gm)].map(([, line]) => Number(line)))
    const next = /Use offset=(\d+)/.exec(output)?.[1]
    offset = next === undefined ? undefined : Number(next)
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 100 }, (_, i) => i + 1),
  )
})

test('a very long line is cut between characters, and the next lines are shown', async () => {
  shop.put('line.txt', `${'é'.repeat(5_000)}\nnext\n`)
  const { output } = await shop.call('read_file', { path: 'line.txt' }, { maxLineBytes: 4_095 })
  assert.match(output, /^ {5}1\té{2047} \[… the line continues for 5905 bytes\]\n {5}2\tnext$/)
})

test('CRLF and invalid bytes are reported, and a byte order mark is not shown', async () => {
  shop.put('crlf.txt', '\uFEFFa\r\nb\r\n')
  shop.put('latin.txt', Buffer.from('caf\xE9\n', 'latin1'))
  const { outputs } = await shop.run([
    ['read_file', { path: 'crlf.txt' }],
    ['read_file', { path: 'latin.txt' }],
  ])
  assert.equal(outputs[0], '     1\ta\n     2\tb\n\n[Lines end with CRLF.]')
  assert.match(outputs[1]!, /^ {5}1\tcaf\uFFFD\n\n\[The file is not UTF-8/)
})

test('a folder, a missing file and invalid arguments have clear messages', async () => {
  shop.put('d/x', '')
  const { executions, outputs, run } = await shop.run([
    ['read_file', { path: 'd' }],
    ['read_file', { path: 'none' }],
    ['read_file', { path: 'd/x/y' }],
    ['read_file', {}],
    ['read_file', { path: 'd', offset: -1 }],
    ['read_file', { path: '' }],
  ])
  assert.deepEqual(
    executions.map(({ status }) => status),
    ['failed', 'failed', 'failed', 'failed', 'failed', 'blocked'],
  )
  assert.match(outputs[0]!, /d is a folder\. Use list_dir\./)
  assert.match(outputs[1]!, /The file none does not exist\./)
  assert.equal(run.status, 'completed')
})

test('other hooks and the model get only the text', async () => {
  shop.put('words.txt', 'hello\n')
  const { run } = await shop.call('read_file', { path: 'words.txt' })
  const last = run.state.messages.at(-2)
  assert.match(JSON.stringify(last), /hello/)
  assert.doesNotMatch(JSON.stringify(last), /"hash"|"seen"/)
})

test('millions of empty lines are not shown at once, whatever the limit is', async () => {
  shop.put('newlines.txt', '\n'.repeat(2_000_000))
  const { output } = await shop.call('read_file', { path: 'newlines.txt', limit: 2_000_000 })
  assert.ok(output.length < 40_000)
  assert.match(output, /Lines 1 to 4096 of 2000000\. Use offset=4096 to continue\./)
})
