import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { files } from './files.ts'
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
