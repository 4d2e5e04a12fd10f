import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { after, beforeEach, test } from 'node:test'
import { CANARY, everyTool, everythingOf, statuses, Workshop, type Call } from './files.fixture.ts'

// Cases F11 to F23 of the security checklist. They check what happened on disk and what is in the run, never only the message of
// a refusal.

let shop = new Workshop()
const shops = [shop]
beforeEach(() => {
  shop = new Workshop()
  shops.push(shop)
})
after(() => shops.forEach((each) => each.remove()))

const read = (path: string): Call => ['read_file', { path }]

test('F11 binary files are described and not shown, and text that is not UTF-8 is never rewritten', async () => {
  const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1A\n', 'latin1'), Buffer.alloc(100), Buffer.from('OLD')])
  const rows = {
    'image.png': png,
    'latin.txt': Buffer.from('caf\xE9 OLD\n', 'latin1'),
    'lone.txt': Buffer.from('\x80OLD', 'latin1'),
  }
  for (const [name, bytes] of Object.entries(rows)) {
    shop.put(name, bytes)
    const { executions } = await shop.run([
      read(name),
      ['edit_file', { path: name, old_string: 'OLD', new_string: 'NEW' }],
    ])
    assert.deepEqual(statuses(executions), ['ok', 'failed'], name)
    assert.deepEqual(readFileSync(shop.path(name)), bytes)
  }
  const { output } = await shop.call(...read('image.png'))
  assert.equal(output, `image.png is a binary file of ${png.length} bytes. It is not shown.`)
})

test('F12 line ends, a byte order mark, a missing last line end and the mode survive an edit', async () => {
  const rows = {
    crlf: ['one\r\nOLD\r\nthree\r\n', 'one\r\nNEW\r\nthree\r\n'],
    bom: ['\uFEFFone\nOLD\n', '\uFEFFone\nNEW\n'],
    open: ['one\nOLD', 'one\nNEW'],
    mixed: ['one\r\nOLD\nthree\r', 'one\r\nNEW\nthree\r'],
    wide: ['𝒳 é e\u0301 \u2028\nOLD\n', '𝒳 é e\u0301 \u2028\nNEW\n'],
  }
  for (const [name, [before, now]] of Object.entries(rows)) {
    shop.put(name, before!, 0o755)
    const { outputs } = await shop.run([
      read(name),
      ['edit_file', { path: name, old_string: 'OLD', new_string: 'NEW' }],
    ])
    assert.equal(readFileSync(shop.path(name), 'utf8'), now, name)
    assert.equal(statSync(shop.path(name)).mode & 0o777, 0o755)
    assert.equal([...outputs[1]!.matchAll(/^[-+](?![-+])/gm)].length, 2, outputs[1])
  }
})

test('F13 a replacement with a dollar sign is literal', async () => {
  shop.put('x', 'a OLD b OLD')
  const evil = "cost $& $1 $$ $` $' $<n>"
  await shop.run([read('x'), ['edit_file', { path: 'x', old_string: 'OLD', new_string: evil, replace_all: true }]])
  assert.equal(readFileSync(shop.path('x'), 'utf8'), `a ${evil} b ${evil}`)
})

test('F14 an ambiguous edit is not made', async () => {
  shop.put('x', 'aaa b b\n')
  const { mtimeMs, ino } = statSync(shop.path('x'))
  const edits = {
    none: ['zzz', 'y'],
    two: ['b', 'y'],
    overlapping: ['aa', 'y'],
    empty: ['', 'y'],
    same: ['aaa', 'aaa'],
  }
  const calls = Object.values(edits).map(([old, now]): Call => [
    'edit_file',
    { path: 'x', old_string: old!, new_string: now! },
  ])
  const { outputs, executions } = await shop.run([read('x'), ...calls])
  assert.deepEqual(new Set(statuses(executions.slice(1))), new Set(['failed']))
  assert.match(outputs[2]!, /found in 2 places/)
  assert.match(outputs[3]!, /found in 2 places/)
  assert.equal(readFileSync(shop.path('x'), 'utf8'), 'aaa b b\n')
  assert.deepEqual([statSync(shop.path('x')).mtimeMs, statSync(shop.path('x')).ino], [mtimeMs, ino])
})

test('F15 a file that changed after it was read is not edited until it is read again', async () => {
  shop.put('x', 'one\ntwo\n')
  const edit: Call = ['edit_file', { path: 'x', old_string: 'two', new_string: '2' }]
  const { executions, outputs } = await shop.run([
    read('x'),
    () => writeFileSync(shop.path('x'), 'ONE\ntwo\n'),
    edit,
    () => assert.equal(readFileSync(shop.path('x'), 'utf8'), 'ONE\ntwo\n'),
    read('x'),
    edit,
  ])
  assert.deepEqual(statuses(executions), ['ok', 'failed', 'ok', 'ok'])
  assert.match(outputs[1]!, /was changed since you read it\. Read it again/)
  assert.equal(readFileSync(shop.path('x'), 'utf8'), 'ONE\n2\n')
})

test('F18 a pattern that would hang a backtracking engine is run in linear time', async () => {
  shop.put('x', `${'a'.repeat(5_000)}!\n`)
  for (const pattern of ['^(a+)+$', '^(a|aa)+$', '(.*a){20}b', '^(([a-z])+.)+[A-Z]([a-z])+$']) {
    const { output } = await shop.call('search_files', { pattern })
    assert.equal(output, '(no matches)', pattern)
  }
})

test('F19 globs that would expand exponentially are run or rejected', async () => {
  for (let i = 0; i < 20; i++) shop.put(`${'a'.repeat(100)}${i}/${'b'.repeat(200)}`, '')
  const globs = [
    '{a,b}'.repeat(30),
    '**/**/**/**/*x',
    '*a'.repeat(60) + 'x',
    `{${'a,'.repeat(400)}b}`,
    'x'.repeat(100_000),
  ]
  const { outputs, executions } = await shop.run(globs.map((glob): Call => ['search_files', { glob }]))
  assert.deepEqual(outputs.slice(0, 4), Array(4).fill('(no matches)'))
  assert.equal(executions[4]!.status, 'failed')
})

test('F20 hidden files are not listed, read, found or written in any way', async () => {
  shop.put('.env', `KEY=${CANARY}\n`)
  shop.put('conf/private/key.pem', `${CANARY}\n`)
  shop.put('ok.txt', 'nothing\n')
  symlinkSync('.env', shop.path('innocent'))
  symlinkSync('conf/private', shop.path('conf2'))
  const { outputs, run } = await shop.run(
    [
      read('.env'),
      read('.ENV'),
      read('innocent'),
      read('conf2/key.pem'),
      ['list_dir', { depth: 5 }],
      ['list_dir', { path: 'conf/private' }],
      ['list_dir', { path: 'conf2' }],
      ['search_files', { pattern: 'KEY|C.NARY' }],
      ['search_files', { pattern: 'C.NARY', path: '.env' }],
      ['search_files', { glob: '**/*' }],
      ['write_file', { path: 'conf/private/new', content: 'x' }],
      ['edit_file', { path: '.env', old_string: 'KEY', new_string: 'x' }],
    ],
    { hide: ['.env*', 'conf/private'], allow: ['.env', 'conf'], readFirst: false },
  )
  assert.doesNotMatch(everythingOf(run), new RegExp(CANARY))
  assert.equal(outputs[4], 'conf/\nconf2 (link)\ninnocent (link)\nok.txt\t8')
  assert.equal(outputs[7], '(no matches)')
  assert.equal(outputs[9], 'ok.txt')
  assert.equal(readFileSync(shop.path('.env'), 'utf8'), `KEY=${CANARY}\n`)
  assert.deepEqual(readdirSync(shop.path('conf/private')), ['key.pem'])
})

test('F20 refusing a hidden path reveals neither the rule nor whether the path exists, in any tool', async () => {
  shop.put('vault/there', `${CANARY}\n`)
  symlinkSync('vault', shop.path('alias'))
  const paths = ['vault', 'vault/there', 'vault/none', 'vault/there/below', 'vault/none/below']
  const aliases = ['alias', 'alias/there', 'alias/none', 'alias/there/below', 'alias/none/below']
  for (const path of [...paths, ...aliases, 'gone/x']) {
    const { outputs, executions } = await shop.run(everyTool(path), { hide: ['v?ult', 'gone'] })
    assert.deepEqual(outputs, Array(6).fill(`${path} is not accessible. Continue without it.`), path)
    assert.deepEqual(new Set(executions.map(({ status, by }) => `${status} ${by}`)), new Set(['blocked files.confine']))
  }
  const listed = await shop.run(
    [
      ['search_files', { glob: 'v*/**' }],
      ['list_dir', {}],
    ],
    { hide: ['v?ult'] },
  )
  assert.equal(listed.outputs[0], '(no matches)')
  assert.doesNotMatch(listed.outputs[1]!, /vault/)
})

test('a refusal to write a protected path, or one that needs approval, does not name the pattern', async () => {
  for (const path of ['.git/hooks/x', 'locked/a', 'package.json', 'asked/a']) {
    const calls: readonly Call[] = [
      ['write_file', { path, content: 'x', overwrite: true }],
      ['edit_file', { path, old_string: 'a', new_string: 'x' }],
    ]
    const { outputs, executions } = await shop.run(calls, { protect: ['l*ked'], ask: ['a*ked'], readFirst: false })
    assert.deepEqual(statuses(executions), ['blocked', 'blocked'])
    for (const output of outputs) {
      assert.ok(output.includes(path), output)
      assert.doesNotMatch(output, /rule|"|\*/)
    }
  }
})

test('F22 files with odd names work, and their names are shown unambiguously', async () => {
  const names = [
    'a\nb',
    '\u001B[31mred',
    '-rf',
    '$(touch MARK)',
    '`touch MARK`',
    'trailing.',
    'trailing ',
    'CON',
    'é',
    'e\u0301',
    '--files',
    '; ls',
  ]
  for (const name of names) {
    const { executions } = await shop.run([
      ['write_file', { path: name, content: 'needle\n' }],
      read(name),
      ['edit_file', { path: name, old_string: 'needle', new_string: 'needles' }],
      ['search_files', { pattern: 'needles', path: name }],
    ])
    assert.deepEqual(statuses(executions), ['ok', 'ok', 'ok', 'ok'], JSON.stringify(name))
  }
  const { outputs } = await shop.run([
    ['list_dir', {}],
    ['search_files', { pattern: 'needles' }],
  ])
  assert.equal(outputs[0]!.split('\n').length, names.length)
  assert.equal(outputs[1]!.split('\n').length, names.length)
  assert.ok(!outputs.join('').includes('\u001B'))
  assert.match(outputs[0]!, /^"a\\nb"\t8$/m)
  await shop.refused([...everyTool('n'.repeat(256)), ...everyTool(`${'d/'.repeat(200)}x`).slice(0, 4)])
  assert.equal(existsSync(shop.path('MARK')), false)
})

test('F23 temporary files have unpredictable names in the folder of the file', async () => {
  const { replaceFile } = await import('./replace-file.ts')
  const { OpenFolder } = await import('./open-folder.ts')
  const directory = await OpenFolder.open(shop.inside, 'path')
  const seen = new Set<string>()
  const spy = new Proxy(directory, {
    get: (target, key) =>
      key === 'at'
        ? (name: string) => (seen.add(name), target.at(name))
        : (Reflect.get(target, key, target) as unknown),
  })
  spy.check = () => Promise.resolve()
  const { signal } = new AbortController()
  for (const name of ['a', 'b']) await replaceFile(spy, name, { content: Buffer.from('x'), before: undefined, signal })
  await directory.close()
  const temporary = [...seen].filter((name) => name.endsWith('.tmp'))
  assert.equal(temporary.length, 2)
  for (const name of temporary) assert.match(name, /^\.hookloop-[0-9a-f]{18}\.tmp$/)
  assert.deepEqual(readdirSync(shop.inside), ['a', 'b'])
})

test('F21 archives are not unpacked', async () => {
  shop.put('bomb.gz', gzipSync(Buffer.alloc(50_000_000, `${CANARY}\n`)))
  const { outputs, run } = await shop.run([read('bomb.gz'), ['search_files', { pattern: 'CANAR[Y]' }]])
  assert.match(outputs[0]!, /binary file/)
  assert.equal(outputs[1], '(no matches)')
  assert.doesNotMatch(everythingOf(run), new RegExp(CANARY))
})
