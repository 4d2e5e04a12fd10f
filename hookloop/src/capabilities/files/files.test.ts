import assert from 'node:assert/strict'
import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { hook } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'
import { files } from './files.ts'
import { filesDefaults } from './options.ts'
import { statuses, Workshop, type Call } from './files.fixture.ts'

const shop = new Workshop()
after(() => shop.remove())

test('the description of an agent names the roots, and says that other tools are not confined', () => {
  const { notes, tools } = createAgent({ model: scriptedModel([]), use: [files({ root: shop.inside })] }).describe()
  assert.ok(
    notes.some((note) => note.startsWith(`Files: reads and writes below ${shop.inside}. Other tools are not confined`)),
  )
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['read_file', 'list_dir', 'search_files', 'write_file', 'edit_file'],
  )
})

test('the defaults are frozen', () => {
  assert.ok(Object.isFrozen(filesDefaults))
  for (const list of [
    filesDefaults.protect,
    filesDefaults.ask,
    filesDefaults.hide,
    filesDefaults.skip,
    filesDefaults.allow,
  ]) {
    assert.ok(Object.isFrozen(list))
  }
})

test('invalid options are rejected by name', () => {
  const root = shop.inside
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{}, /give either "root" or "roots"/],
    [{ root, roots: [root] }, /give either "root" or "roots"/],
    [{ root: '' }, /a root must be a path/],
    [{ root: join(root, 'none') }, /cannot be used: ENOENT/],
    [{ root: shop.secret }, /it is not a folder/],
    [{ root, hidden: [] }, /unknown option "hidden"/],
    [{ root, protect: ['../x'] }, /"\.\.\/x" in "protect"/],
    [{ root, maxLines: 0 }, /"maxLines" must be a whole number/],
    [{ root, maxLineBytes: 40_000 }, /"maxLineBytes" must not be more/],
  ]
  for (const [options, words] of wrong) {
    assert.throws(
      () => files(options),
      (error: { code?: string; message: string }) => {
        assert.equal(error.code, 'AGENT_INVALID_OPTION')
        assert.match(error.message, words)
        return true
      },
    )
  }
})

test('.env files, keys and credentials are not read unless they are named in allow', async () => {
  const secrets = ['.env', '.env.local', 'conf/server.pem', 'id_rsa', '.npmrc', '.aws/credentials']
  for (const path of [...secrets, '.env.example']) shop.put(path, 'TOKEN')
  const calls = [...secrets, '.env.example'].map((path): Call => ['read_file', { path }])
  const byDefault = await shop.run(calls)
  const named = await shop.run(calls, { allow: [...secrets.slice(0, 5), '.aws'] })
  const found = await shop.call('search_files', { pattern: 'TOKEN' })
  assert.deepEqual(statuses(byDefault.executions), [...secrets.map(() => 'blocked'), 'ok'])
  assert.deepEqual(
    statuses(named.executions),
    calls.map(() => 'ok'),
  )
  assert.equal(found.output, '.env.example:1: TOKEN')
})

test('paths in several roots are relative to the first and absolute in the others', async () => {
  const other = join(shop.home, 'other')
  const second = new Workshop()
  second.put('b.txt', 'second\n')
  shop.put('a.txt', 'first\n')
  symlinkSync(second.path('b.txt'), shop.path('across'))
  const { outputs } = await shop.run(
    [
      ['read_file', { path: 'a.txt' }],
      ['read_file', { path: second.path('b.txt') }],
      ['read_file', { path: 'across' }],
      ['search_files', { pattern: 'second', path: second.inside }],
      ['read_file', { path: other }],
    ],
    { roots: [shop.inside, second.inside] },
  )
  second.remove()
  assert.deepEqual(outputs.slice(0, 4), [
    '     1\tfirst',
    '     1\tsecond',
    '     1\tsecond',
    `${second.path('b.txt')}:1: second`,
  ])
  assert.match(outputs[4]!, /is outside of the allowed folders/)
})

test('a root that is a link is the folder it leads to', async () => {
  shop.put('linked.txt', 'x\n')
  const alias = join(shop.home, 'alias')
  symlinkSync(shop.inside, alias)
  const { outputs } = await shop.run(
    [
      ['read_file', { path: 'linked.txt' }],
      ['read_file', { path: join(alias, 'linked.txt') }],
      ['read_file', { path: shop.path('linked.txt') }],
    ],
    { root: alias },
  )
  assert.deepEqual(new Set(outputs), new Set(['     1\tx']))
})

test('guards judge the path after hooks have rewritten it', async () => {
  const rewrite = hook('beforeToolUse', (ctx) => ctx.withArgs({ path: '../o/secret' }), { tool: 'read_file' })
  const { status, by } = await shop.call('read_file', { path: 'a.txt' }, { use: [rewrite] })
  assert.deepEqual([status, by], ['blocked', 'files.confine'])
})

test('a replay needs no files', async () => {
  const root = new Workshop()
  root.put('x.txt', 'one\n')
  const script = [
    { toolCalls: [{ name: 'read_file', args: { path: 'x.txt' } }] },
    { toolCalls: [{ name: 'edit_file', args: { path: 'x.txt', old_string: 'one', new_string: 'two' } }] },
    { toolCalls: [{ name: 'read_file', args: { path: '../o/secret' } }] },
    'Done.',
  ]
  const store = memoryStore()
  const agent = createAgent({ model: scriptedModel(script), store, use: [files({ root: root.inside })] })
  await agent.run('Go.', { session: 's' })
  rmSync(root.path('x.txt'))
  writeFileSync(root.path('x.txt'), 'something else')
  await strictReplay(agent, store, 's')
  root.remove()
})
