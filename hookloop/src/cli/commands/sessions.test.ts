import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { findSession } from '../sessions/find-session.ts'
import { Workshop } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts']
const REFUSED = 'A session id must be 1 to 128 letters, digits, _ and -, starting with a letter or digit.'
describe('hookloop sessions', { concurrency: 2 }, () => {
  test('lists what is kept, the latest first, and what it took', async () => {
    const shop = new Workshop()
    await shop.hookloop(['run', 'one  and\n two', ...agent, '--session', 'first'])
    await shop.hookloop(['run', 'deploy x', ...agent, '--session', 'second'])
    const { code, stdout } = await shop.hookloop(['sessions'])
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replaceAll(/ {2,}/g, ' | '))
    assert.deepEqual(
      [code, lines],
      [
        0,
        [
          'SESSION | WHEN | STATUS | AGENT | STEPS | TOKENS | COST | TITLE',
          'second | now | suspended (1) | shipper | 0 | 15 | deploy x',
          'first | now | completed | shipper | 1 | 15 | one and two',
        ],
      ],
    )
  })

  test('says when there is nothing yet, and when there is no such store', async () => {
    const shop = new Workshop()
    const ends = await Promise.all([
      shop.hookloop(['sessions']),
      shop.hookloop(['sessions', '--json']),
      shop.hookloop(['sessions', '--store', 'typo.db']),
      shop.hookloop(['explain']),
    ])
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      [
        [0, ''],
        [0, '[]\n'],
        [2, ''],
        [2, ''],
      ],
    )
    assert.equal(ends[2].stderr, 'error: No session store found at typo.db.\n')
  })

  test('lists one that cannot be read as such, beside the others', async () => {
    const shop = new Workshop({ HOOKLOOP_STORE: 'folder' })
    await shop.hookloop(['run', 'one', ...agent, '--session', 'good'])
    mkdirSync(shop.path('folder/bad'))
    writeFileSync(shop.path('folder/bad/1.jsonl'), 'not what was written\n')
    const [shown, json] = await Promise.all([shop.hookloop(['sessions']), shop.hookloop(['sessions', '--json'])])
    assert.match(shown.stdout, /^bad +\S.* corrupt /m)
    assert.match(shown.stdout, /^good +\S.* completed /m)
    const bad = (JSON.parse(json.stdout) as { id: string; status: string; problem?: string }[]).find(
      ({ id }) => id === 'bad',
    )
    assert.deepEqual([bad?.status, typeof bad?.problem], ['corrupt', 'string'])
  })

  test('a head that somebody wrote into cannot command a terminal or break the list', async () => {
    const shop = new Workshop()
    await shop.hookloop(['run', 'one', ...agent, '--session', 'first'])
    const head = {
      status: 'constructor',
      agent: '\u001B]0;x\u0007',
      steps: 'many',
      title: '\u001B[2J\nx',
      pending: 'no',
    }
    const database = new DatabaseSync(shop.path('data/hookloop/sessions.db'))
    database.prepare('UPDATE sessions SET head = ?').run(JSON.stringify(head))
    database.close()
    const { code, stdout } = await shop.hookloop(['sessions'], { env: { FORCE_COLOR: '1' } })
    assert.equal(code, 0)
    assert.ok(!stdout.includes('\u001B]') && !stdout.includes('\u001B[2J'))
    assert.equal(stdout.split('\n').length, 3)
  })

  test('delete deletes what is named, by its beginning if that is clear', async () => {
    const shop = new Workshop()
    for (const id of ['aa-1', 'aa-2', 'bb-1']) await shop.hookloop(['run', 'x', ...agent, '--session', id])
    const unclear = await shop.hookloop(['sessions', 'delete', 'bb', 'aa'])
    assert.deepEqual([unclear.code, unclear.stderr], [2, 'error: "aa" matches 2 sessions: aa-2, aa-1.\n'])
    const { stdout } = await shop.hookloop(['sessions', 'delete', 'bb', 'aa-1', '--json'])
    assert.equal(stdout, '{"deleted":["bb-1","aa-1"]}\n')
    assert.match((await shop.hookloop(['sessions'])).stdout, /^SESSION .*\naa-2 .*\n$/)
  })
})

describe('an id that no store takes', { concurrency: 2 }, () => {
  const shop = new Workshop()
  const ways: readonly (readonly string[])[] = [
    ['explain', '../x'],
    ['steps', '\u001B[2J'],
    ['resume', "x'; DROP TABLE sessions; --"],
    ['export', ''],
    ['fork', 'x'.repeat(5000)],
    ['sessions', 'delete', '*'],
    ['run', 'hello', ...agent, '--session', '../x'],
    ['chat', ...agent, '--session', '%2e%2e'],
  ]
  for (const way of ways) {
    test(`is refused by ${way[0]}, with 2 and without being obeyed`, async () => {
      const { code, stdout, stderr } = await shop.hookloop(way, { input: 'hello\n' })
      assert.deepEqual([code, stdout], [2, ''])
      assert.equal(stderr, `error: ${REFUSED}\n`)
    })
  }

  test('is never looked for', async () => {
    const store = memoryStore()
    const hostile = ['../../etc', 'a/b', '.', '-x', '%2e', 'ü', ' ', 'a b', '\u0000', '\u001B[2J', 'x'.repeat(129), '']
    for (const id of hostile) await assert.rejects(findSession(store, id), { code: 'SESSION_ID_INVALID' })
  })
})
