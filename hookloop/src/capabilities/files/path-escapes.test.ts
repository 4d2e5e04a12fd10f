import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import type { JsonObject } from '../../values/json.ts'
import { approval } from '../approval.ts'
import { CANARY, everyTool, everythingOf, statuses, Workshop, type Call } from './files.fixture.ts'

// Cases F01 to F09 of the security checklist. They check what happened on disk and what is in the run, never only the message of a
// refusal.

let shop = new Workshop()
const shops = [shop]
beforeEach(() => {
  shop = new Workshop()
  shops.push(shop)
})
after(() => shops.forEach((each) => each.remove()))

const read = (path: string): Call => ['read_file', { path }]

test('F01 a path that leaves the root is refused, with the same message whether or not it exists', async () => {
  const out = [
    '../o/secret',
    'a/../../o/secret',
    shop.secret,
    `${shop.inside}/../o/secret`,
    '/etc/passwd',
    '..',
    '/',
    '~/x',
    '~',
  ]
  for (const path of [...out, `file://${shop.secret}`, `FILE:${shop.secret}`]) await shop.refused(everyTool(path))
  const [there, missing] = [await shop.refused([read('../o/secret')]), await shop.refused([read('../o/nothing')])]
  assert.equal(there[0]!.replace('secret', ''), missing[0]!.replace('nothing', ''))
  const { outputs } = await shop.run([read('%2e%2e/o/secret'), ['write_file', { path: '%2e%2e/x', content: 'mine' }]])
  assert.match(outputs[0]!, /The file %2e%2e\/o\/secret does not exist/)
  assert.equal(readFileSync(shop.path('%2e%2e/x'), 'utf8'), 'mine')
})

test('F01 a path with a NUL, or of four thousand characters, is refused', async () => {
  await shop.refused([
    ...everyTool('a\0/../../o/secret'),
    ...everyTool('x'.repeat(4_500)),
    ...everyTool('../'.repeat(1_300)),
  ])
})

test('F02 a folder whose name starts like the root is outside, and a name that starts with two dots is not', async () => {
  const sibling = `${shop.inside}-secrets`
  mkdirSync(sibling)
  writeFileSync(join(sibling, 'x'), CANARY)
  await shop.refused([...everyTool(join(sibling, 'x')), ...everyTool('../w-secrets/x')])
  const { executions } = await shop.run([['write_file', { path: '..hidden/x', content: 'fine' }], read('..hidden/x')])
  assert.deepEqual(statuses(executions), ['ok', 'ok'])
})

test('F03 nothing is read, listed or found through a link that leads out', async () => {
  symlinkSync('../o', shop.path('link'))
  symlinkSync(shop.secret, shop.path('file-link'))
  symlinkSync('link/secret', shop.path('twice'))
  mkdirSync(shop.path('d'))
  symlinkSync('../../o', shop.path('d/deep'))
  for (const path of ['link/secret', 'link', 'file-link', 'twice', 'd/deep/secret']) await shop.refused(everyTool(path))
  const { outputs, run } = await shop.run([
    ['search_files', { pattern: 'CANAR[Y]' }],
    ['search_files', { glob: '**/secret' }],
    ['list_dir', { depth: 5 }],
  ])
  assert.deepEqual(outputs.slice(0, 2), ['(no matches)', '(no matches)'])
  assert.doesNotMatch(outputs[2]!, /secret/)
  assert.doesNotMatch(everythingOf(run), new RegExp(CANARY))
})

test('F04 a new file is not created through a link that leads out, whether a file or a folder', async () => {
  symlinkSync('../o/new.txt', shop.path('dangling'))
  symlinkSync('../o', shop.path('link'))
  symlinkSync('../o/none', shop.path('nowhere'))
  const write = (path: string): Call => ['write_file', { path, content: 'x', overwrite: true }]
  await shop.refused(['dangling', 'link/new.txt', 'link/a/b/new.txt', 'nowhere/x', 'nowhere'].map(write))
  assert.equal(existsSync(join(shop.outside, 'new.txt')), false)
})

test('F06 a hard link to something outside is not written through', async () => {
  linkSync(shop.secret, shop.path('hard'))
  const { executions } = await shop.run([
    read('hard'),
    ['edit_file', { path: 'hard', old_string: CANARY, new_string: 'gone' }],
  ])
  assert.deepEqual(statuses(executions), ['ok', 'ok'])
  assert.equal(readFileSync(shop.secret, 'utf8'), `${CANARY}\n`)
  assert.equal(readFileSync(shop.path('hard'), 'utf8'), 'gone\n')
  assert.notEqual(statSync(shop.path('hard')).ino, statSync(shop.secret).ino)
})

const rails = [
  '.git/config',
  '.git/hooks/pre-commit',
  '.GIT/Config',
  '.git./config',
  '.g\u200Bit/hooks/x',
  'sub/.git/config',
  '.hookloop/hooks.json',
  '.HookLoop/hooks.json',
  '.claude/settings.json',
  '.env',
  '.env.local',
  '.ENV',
  '.bashrc',
  '.zshrc',
  '.profile',
  '.gitconfig',
  '.gitmodules',
  '.vscode/settings.json',
  '.idea/workspace.xml',
  '.mcp.json',
  '.MCP.json',
]

test('F07 protected files are not written, in any spelling, even if everything is approved', async () => {
  for (const path of rails) {
    const calls: readonly Call[] = [
      ['write_file', { path, content: 'evil', overwrite: true }],
      ['write_file', { path: shop.path(path), content: 'evil', overwrite: true }],
    ]
    const { executions } = await shop.run(calls, { use: [approval(() => 'allow')] })
    assert.deepEqual(statuses(executions), ['blocked', 'blocked'], path)
    assert.equal(existsSync(shop.path(path)), false, path)
  }
  assert.deepEqual(readdirSync(shop.inside), [])
})

test('F07 an existing protected file is not edited, also not through links', async () => {
  shop.put('.git/config', '[core]\n')
  symlinkSync('.git', shop.path('innocent'))
  symlinkSync('.git/config', shop.path('plain.txt'))
  for (const path of ['.git/config', 'innocent/config', 'plain.txt']) {
    const edit: JsonObject = { path, old_string: '[core]', new_string: '[core]\nfsmonitor = evil' }
    const { executions } = await shop.run([read(path), ['edit_file', edit]], { use: [approval(() => 'allow')] })
    assert.deepEqual(statuses(executions), ['ok', 'blocked'], path)
  }
  const { executions } = await shop.run([['write_file', { path: 'innocent/hooks/pre-commit', content: 'evil' }]])
  assert.deepEqual(statuses(executions), ['blocked'])
  assert.equal(readFileSync(shop.path('.git/config'), 'utf8'), '[core]\n')
  assert.deepEqual(readdirSync(shop.path('.git')), ['config'])
})

test('F07 package.json needs approval in any spelling, and is not written without an approver', async () => {
  for (const path of ['package.json', 'Package.JSON', 'sub/package.json']) {
    const { executions } = await shop.run([['write_file', { path, content: '{}' }]])
    assert.deepEqual(statuses(executions), ['blocked'])
    assert.equal(existsSync(shop.path(path)), false)
  }
})

test('F07 a link that is changed to package.json after it was judged is not followed', async () => {
  shop.put('package.json', '{}\n')
  shop.put('harmless.txt', '{}\n')
  symlinkSync('harmless.txt', shop.path('file'))
  const { hook } = await import('../../core/hooks/hook.ts')
  const { unlinkSync } = await import('node:fs')
  // After the guards have spoken and before the tool runs.
  const turn = hook('aroundToolUse', async (_ctx, next) => {
    unlinkSync(shop.path('file'))
    symlinkSync('package.json', shop.path('file'))
    return next()
  })
  const { outputs } = await shop.run([['write_file', { path: 'file', content: 'evil', overwrite: true }]], {
    use: [turn],
  })
  assert.match(outputs[0]!, /leads to another file than when it was judged/)
  assert.equal(readFileSync(shop.path('package.json'), 'utf8'), '{}\n')
})

test('F07 an allow rule opens one protected path and no other', async () => {
  const { executions } = await shop.run(
    [
      ['write_file', { path: '.vscode/settings.json', content: '{}' }],
      ['write_file', { path: '.vscode/tasks.json', content: '{}' }],
      ['write_file', { path: '.git/config', content: '' }],
    ],
    { allow: ['.vscode/settings.json'] },
  )
  assert.deepEqual(statuses(executions), ['ok', 'blocked', 'blocked'])
})

test('F08 a missing protected file is not created, nor is its folder', async () => {
  const { executions } = await shop.run(
    ['.hookloop/hooks.json', '.claude/settings.local.json', 'a/.claude/x', '.husky/pre-commit'].map((path): Call => [
      'write_file',
      { path, content: '{}' },
    ]),
  )
  assert.deepEqual(new Set(statuses(executions)), new Set(['blocked']))
  assert.deepEqual(readdirSync(shop.inside), [])
})

test('F09 a pipe, a socket and a folder are refused without blocking', async () => {
  execFileSync('mkfifo', [shop.path('pipe')])
  const server = createServer().listen(shop.path('socket'))
  await new Promise((resolve) => server.once('listening', resolve))
  mkdirSync(shop.path('folder'))
  const { outputs, executions } = await shop.run(
    ['pipe', 'socket', 'folder'].flatMap((path) => [
      read(path),
      ['edit_file', { path, old_string: 'a', new_string: 'b' }] as const,
      ['write_file', { path, content: 'x', overwrite: true }] as const,
      ['search_files', { path, pattern: 'x' }] as const,
    ]),
    { readFirst: false },
  )
  server.close()
  assert.deepEqual(new Set(statuses(executions.slice(0, 11))), new Set(['failed']))
  assert.equal(outputs[11], '(no matches)')
  assert.ok(statSync(shop.path('pipe')).isFIFO())
})

test('F09 devices and virtual files are refused, even if the root is /', async () => {
  const paths = ['/dev/zero', '/dev/stdin', '/dev/tty', '/proc/self/environ', '/proc/self/fd/3', '/dev', '/proc']
  for (const options of [{}, { root: '/' }]) {
    const { executions, outputs } = await shop.run(paths.map(read), options)
    assert.ok(
      executions.every(({ status }) => status !== 'ok'),
      outputs.join('\n'),
    )
  }
})

test('F09 a device below the root is refused', async (t) => {
  try {
    execFileSync('mknod', [shop.path('zero'), 'c', '1', '5'], { stdio: 'ignore' })
  } catch {
    return t.diagnostic('devices can only be made by root')
  }
  const { executions } = await shop.run([read('zero'), ['write_file', { path: 'zero', content: 'x', overwrite: true }]])
  assert.deepEqual(statuses(executions), ['failed', 'failed'])
  assert.ok(statSync(shop.path('zero')).isCharacterDevice())
})
