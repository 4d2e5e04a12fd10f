import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Workshop, type Result } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts']

describe('hookloop chat in a pipe', { concurrency: 2 }, () => {
  test('one line is one message, and answers go to stdout', async () => {
    const shop = new Workshop()
    const { code, stdout, stderr } = await shop.hookloop(['chat', ...agent], { input: 'one\r\n\n  \ntwo' })
    assert.deepEqual([code, stdout], [0, 'I heard one\nI heard one, two\n'])
    assert.equal(stderr.match(/✓ completed/g)?.length, 2)
  })

  test('may be as long as it likes', async () => {
    const shop = new Workshop()
    const { code, stdout, stderr } = await shop.hookloop(['chat', ...agent], { input: 'x\n'.repeat(15) })
    assert.deepEqual([code, stdout.split('\n').length], [0, 16])
    assert.doesNotMatch(stderr, /Warning/)
  })

  test('goes on with a session, and needs no agent to be named again', async () => {
    const shop = new Workshop()
    await shop.hookloop(['chat', ...agent, '--session', 'talk'], { input: 'one\n' })
    const { stdout } = await shop.hookloop(['chat', '--session', 'talk', '-q'], {
      input: '/clear is no command here\n',
    })
    assert.equal(stdout, 'I heard one, /clear is no command here\n')
  })

  test('with --json every message ends in a result with the session', async () => {
    const shop = new Workshop()
    const { stdout, stderr } = await shop.hookloop(['chat', ...agent, '--json', '--session', 'talk'], {
      input: 'one\ntwo\n',
    })
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Result & { type: string })
    const results = lines.filter(({ type }) => type === 'result')
    assert.deepEqual(
      results.map(({ text, session }) => [text, session]),
      [
        ['I heard one', 'talk'],
        ['I heard one, two', 'talk'],
      ],
    )
    assert.equal(stderr, '')
  })

  test('ends with what did not end well, and with its exit code', async () => {
    const shop = new Workshop()
    const [failed, waits] = await Promise.all([
      shop.hookloop(['chat', ...agent], { input: 'fail\nnever said\n' }),
      shop.hookloop(['chat', ...agent], { input: 'deploy production\nnever said\n' }),
    ])
    assert.deepEqual([failed.code, failed.stdout, waits.code, waits.stdout], [1, '', 4, ''])
    assert.match(waits.stderr, / approve \w{8}, or /)
  })

  test('keeps nothing with --no-store, and then nobody can be asked', async () => {
    const shop = new Workshop()
    const { code, stdout } = await shop.hookloop(['chat', ...agent, '--no-store', '-q'], { input: 'deploy x\nand?\n' })
    assert.equal(code, 0)
    assert.match(stdout, /^It says: Not run: .*nobody can be asked\.\nI heard deploy x, and\?\n$/)
    assert.equal((await shop.hookloop(['sessions', '--json'])).stdout, '[]\n')
  })

  test('is cancelled with Ctrl-C', async () => {
    const shop = new Workshop()
    const running = shop.start(['chat', ...agent, '--json'], { input: 'slow\nnever said\n' })
    await running.wrote(/"type":"text"/)
    running.kill('SIGINT')
    const { code, stdout } = await running.ended
    assert.equal(code, 130)
    assert.match(stdout.trimEnd().split('\n').at(-1)!, /^{"type":"result","status":"cancelled"/)
  })
})
