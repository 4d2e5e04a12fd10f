import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { findSession } from '../sessions/find-session.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts']
const REFUSED =
  /^error: A session id must be a text of 1 to 256 characters without control characters: it (?:is empty|has 5000|contains a control character)\.\n$/
describe('hookloop sessions', { concurrency: 2 }, () => {
  test('lists sessions, the latest first, with their usage', async () => {
    const project = new ScriptedProject()
    await project.hookloop(['run', 'one  and\n two', ...agent, '--session', 'first'])
    await project.hookloop(['run', 'deploy x', ...agent, '--session', 'second'])
    const { code, stdout } = await project.hookloop(['sessions'])
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

  test('reports that there are no sessions, or no such store', async () => {
    const project = new ScriptedProject()
    const ends = await Promise.all([
      project.hookloop(['sessions']),
      project.hookloop(['sessions', '--json']),
      project.hookloop(['sessions', '--store', 'typo.db']),
      project.hookloop(['explain']),
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

  test('lists a session that cannot be read as corrupt', async () => {
    const project = new ScriptedProject()
    for (const id of ['good', 'bad']) await project.hookloop(['run', 'one', ...agent, '--session', id])
    const database = new DatabaseSync(project.path('data/hookloop/sessions.db'))
    database.exec(`UPDATE sessions SET head = 'not what was written' WHERE id = 'bad'`)
    database.close()
    const [shown, json] = await Promise.all([project.hookloop(['sessions']), project.hookloop(['sessions', '--json'])])
    assert.match(shown.stdout, /^bad +\S.* corrupt /m)
    assert.match(shown.stdout, /^good +\S.* completed /m)
    const bad = (JSON.parse(json.stdout) as { id: string; status: string; problem?: string }[]).find(
      ({ id }) => id === 'bad',
    )
    assert.deepEqual([bad?.status, typeof bad?.problem], ['corrupt', 'string'])
  })

  test('delete deletes sessions by id or unambiguous prefix', async () => {
    const project = new ScriptedProject()
    for (const id of ['aa-1', 'aa-2', 'bb-1']) await project.hookloop(['run', 'x', ...agent, '--session', id])
    const unclear = await project.hookloop(['sessions', 'delete', 'bb', 'aa'])
    assert.deepEqual([unclear.code, unclear.stderr], [2, 'error: "aa" matches 2 sessions: aa-2, aa-1.\n'])
    const { stdout } = await project.hookloop(['sessions', 'delete', 'bb', 'aa-1', '--json'])
    assert.equal(stdout, '{"deleted":["bb-1","aa-1"]}\n')
    assert.match((await project.hookloop(['sessions'])).stdout, /^SESSION .*\naa-2 .*\n$/)
  })

  test('are listed by status and in pages with their number, and old ones are pruned', async () => {
    const project = new ScriptedProject()
    for (const id of ['a', 'b', 'c']) await project.hookloop(['run', 'x', ...agent, '--session', id])
    const ids = async (...args: string[]): Promise<string> => {
      const { stdout } = await project.hookloop(['sessions', ...args, '--json'])
      return (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id).join('')
    }
    assert.deepEqual(
      [await ids('--status', 'completed', '--limit', '2'), await ids('--after', 'b'), await ids('--status', 'failed')],
      ['cb', 'a', ''],
    )
    const limited = await project.hookloop(['sessions', '--status', 'completed', '--limit', '2'])
    assert.equal(limited.stderr, 'Listed 2 of 3 sessions.\n')
    const none = await project.hookloop(['sessions', 'prune', '--older-than', '30d'])
    assert.deepEqual([none.code, none.stderr], [0, 'Deleted 0 sessions.\n'])
    assert.equal((await project.hookloop(['sessions', 'prune', '--older-than', 'soon'])).code, 2)
    const { stdout } = await project.hookloop(['sessions', 'prune', '--older-than', '0m', '--json'])
    assert.equal((JSON.parse(stdout) as { deleted: string[] }).deleted.toSorted().join(''), 'abc')
    assert.equal(await ids(), '')
  })
})

describe('an invalid session id', { concurrency: 2 }, () => {
  const project = new ScriptedProject()
  const ways: readonly (readonly string[])[] = [
    ['explain', 'x\u0007'],
    ['steps', '\u001B[2J'],
    ['resume', 'x\ny'],
    ['export', ''],
    ['fork', 'x'.repeat(5000)],
    ['sessions', 'delete', '\u009B31m'],
    ['run', 'hello', ...agent, '--session', '\u001B]0;x\u0007'],
    ['chat', ...agent, '--session', '\r'],
  ]
  for (const way of ways) {
    test(`is rejected by ${way[0]} with 2, and its control characters are not printed`, async () => {
      const { code, stdout, stderr } = await project.hookloop(way, { input: 'hello\n' })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, REFUSED)
    })
  }

  test('is never looked up in the store', async () => {
    const store = memoryStore()
    const hostile = ['', ' ', '\t', 'a\n', '\u0000', '\u001B[2J', '\u0085', '\ud800', 'x'.repeat(257)]
    for (const id of hostile) await assert.rejects(findSession(store, id), { code: 'SESSION_ID_INVALID' })
  })
})
