import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres, type PostgresServer } from '../../sessions/stores/postgres.fixture.ts'
import { Workshop } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts', '--session', 'pay']

/** A run whose process is killed while its tool is at work. */
async function killed(store: string, env: NodeJS.ProcessEnv = {}): Promise<Workshop> {
  const shop = new Workshop({ HOOKLOOP_STORE: store, ...env })
  const running = shop.start(['run', 'charge', ...agent], { env: { HANGS: '1' } })
  while (shop.done().length === 0) await sleep(5)
  running.kill('SIGKILL')
  await running.ended
  return shop
}

let postgres: PostgresServer | undefined
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres?.stop())

describe('a run whose process was killed in the middle of a tool', { concurrency: 2 }, () => {
  for (const store of ['sessions.db', 'folder', 'Postgres']) {
    test(`goes on from ${store} in another process: the tool is not run again, and the model is told`, async () => {
      const shop = await killed(store === 'Postgres' ? postgres!.connectionString : store)
      const { code, stdout, stderr } = await shop.hookloop(['resume', 'pay'])
      assert.equal(code, 0)
      assert.deepEqual(shop.done(), ['charged'])
      assert.match(stdout, /^It says: The process ended while the tool was running\. It may have had an effect\.\n$/)
      assert.match(stderr, /^\? charge .*outcome is unknown/m)
    })
  }

  test('is asked about if the tool says so: listed, explained, and run again or not as somebody answers', async () => {
    const shop = await killed('sessions.db', { ASKS: '1' })
    const { code, stderr } = await shop.hookloop(['resume', 'pay'], { input: '' })
    assert.deepEqual([code, shop.done()], [4, ['charged']])
    const [, id] = / approve (\w+)/.exec(stderr) ?? []
    const [listed, explained] = [await shop.hookloop(['approvals']), await shop.hookloop(['explain', 'pay'])]
    const question = /"charge" was begun and cut off before .* it may have happened\. Run it again\?/
    assert.match(listed.stdout, question)
    assert.match(explained.stdout, question)
    const other = await shop.hookloop(['approve', id!, '--args', '{}'])
    assert.deepEqual([other.code, /run again with them, or not at all/.test(other.stderr)], [2, true])
    const { stdout } = await shop.hookloop(['approve', id!, '--resume', '--quiet'])
    assert.deepEqual([stdout, shop.done()], ['It says: paid\n', ['charged', 'charged']])
    assert.match((await shop.hookloop(['explain', 'pay'])).stdout, /asked .*Run it again\? approved/)
  })

  test('is listed as running, explained as unfinished, and takes no new input until it was gone on with', async () => {
    const shop = await killed('sessions.db')
    const [listed, explained, refused] = await Promise.all([
      shop.hookloop(['sessions']),
      shop.hookloop(['explain', 'pay']),
      shop.hookloop(['run', 'hello', ...agent]),
    ])
    assert.match(listed.stdout, /^pay +\S.* running +shipper/m)
    assert.match(
      explained.stdout,
      /^The run has not ended: it is still running, or its process was killed\.\n(.*\n)* +to continue .* resume pay\n$/,
    )
    assert.deepEqual([refused.code, refused.stdout], [2, ''])
    const chat = await shop.hookloop(['chat', '--session', 'pay', '--quiet'], { input: 'hello\n' })
    assert.deepEqual(
      [chat.code, chat.stdout.split('\n').at(-2), shop.done()],
      [0, 'I heard charge, hello', ['charged']],
    )
  })

  test('is gone on with by one of two who try, and the other is told that it is busy, with 5', async () => {
    const shop = new Workshop()
    const asked = await shop.hookloop(['run', 'charge', ...agent, '--max-steps', '5'], { env: { HANGS: '' } })
    assert.equal(asked.code, 0)
    const running = shop.start(['run', 'charge', ...agent], { env: { HANGS: '1' } })
    while (shop.done().length < 2) await sleep(5)
    const ends = await Promise.all([
      shop.hookloop(['resume', 'pay']),
      shop.hookloop(['chat', '--session', 'pay'], { input: 'hello\n' }),
      shop.hookloop(['sessions', 'delete', 'pay']),
    ])
    running.kill('SIGKILL')
    await running.ended
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      ends.map(() => [5, '']),
    )
    for (const { stderr } of ends) assert.match(stderr, /^error: The session "pay" is locked by process \d+/m)
    const both = await Promise.all([shop.hookloop(['resume', 'pay']), shop.hookloop(['resume', 'pay'])])
    const codes = both.map(({ code }) => code).toSorted((a, b) => a! - b!)
    assert.equal(codes[0], 0)
    assert.ok(codes[1] === 5 || codes[1] === 2, `the other ended with ${codes[1]}`) // 2 if the first was through already
    assert.deepEqual(shop.done(), ['charged', 'charged'])
  })
})
