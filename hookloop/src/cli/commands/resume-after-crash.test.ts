import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres, type PostgresServer } from '../../sessions/stores/postgres.fixture.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts', '--session', 'pay']

/** A run whose process is killed while its tool is at work. */
async function killed(store: string, env: NodeJS.ProcessEnv = {}): Promise<ScriptedProject> {
  const project = new ScriptedProject({ HOOKLOOP_STORE: store, ...env })
  const running = project.start(['run', 'charge', ...agent], { env: { HANGS: '1' } })
  while (project.done().length === 0) await sleep(5)
  running.kill('SIGKILL')
  await running.ended
  return project
}

let postgres: PostgresServer | undefined
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres?.stop())

describe('a run whose process was killed in the middle of a tool', { concurrency: 2 }, () => {
  for (const store of ['sessions.db', 'Postgres']) {
    test(`is resumed from ${store} by another process: the tool does not run again, and the model receives a note`, async () => {
      const project = await killed(store === 'Postgres' ? postgres!.connectionString : store)
      const { code, stdout, stderr } = await project.hookloop(['resume', 'pay'])
      assert.equal(code, 0)
      assert.deepEqual(project.done(), ['charged'])
      assert.match(stdout, /^It says: The process ended while the tool was running\. It may have had an effect\.\n$/)
      assert.match(stderr, /^\? charge .*outcome is unknown/m)
    })
  }

  test('asks whether to run the tool again if the tool wants that', async () => {
    const project = await killed('sessions.db', { ASKS: '1' })
    const { code, stderr } = await project.hookloop(['resume', 'pay'], { input: '' })
    assert.deepEqual([code, project.done()], [4, ['charged']])
    const [, id] = / approve (\w+)/.exec(stderr) ?? []
    const [listed, explained] = [await project.hookloop(['approvals']), await project.hookloop(['explain', 'pay'])]
    const question = /"charge" was started and interrupted before .* it may have had an effect\. Run it again\?/
    assert.match(listed.stdout, question)
    assert.match(explained.stdout, question)
    const other = await project.hookloop(['approve', id!, '--args', '{}'])
    assert.deepEqual([other.code, /Run it again with the same arguments, or block it/.test(other.stderr)], [2, true])
    const { stdout } = await project.hookloop(['approve', id!, '--resume', '--quiet'])
    assert.deepEqual([stdout, project.done()], ['It says: paid\n', ['charged', 'charged']])
    assert.match((await project.hookloop(['explain', 'pay'])).stdout, /asked .*Run it again\? approved/)
  })

  test('is listed as interrupted, explained as unfinished, and takes no new input until it is resumed', async () => {
    const project = await killed('sessions.db')
    const [listed, explained, refused] = await Promise.all([
      project.hookloop(['sessions']),
      project.hookloop(['explain', 'pay']),
      project.hookloop(['run', 'hello', ...agent]),
    ])
    assert.match(listed.stdout, /^pay +\S.* interrupted +shipper/m)
    assert.match(
      explained.stdout,
      /^The run has not ended: it is still running, or its process was killed\.\n(.*\n)* +to continue .* resume pay\n$/,
    )
    assert.deepEqual([refused.code, refused.stdout], [2, ''])
    const chat = await project.hookloop(['chat', '--session', 'pay', '--quiet'], { input: 'hello\n' })
    assert.deepEqual(
      [chat.code, chat.stdout.split('\n').at(-2), project.done()],
      [0, 'I heard charge, hello', ['charged']],
    )
  })

  test('is resumed by one of two processes, and the other exits with 5', async () => {
    const project = new ScriptedProject()
    const asked = await project.hookloop(['run', 'charge', ...agent, '--max-steps', '5'], { env: { HANGS: '' } })
    assert.equal(asked.code, 0)
    const running = project.start(['run', 'charge', ...agent], { env: { HANGS: '1' } })
    while (project.done().length < 2) await sleep(5)
    const ends = await Promise.all([
      project.hookloop(['resume', 'pay']),
      project.hookloop(['chat', '--session', 'pay'], { input: 'hello\n' }),
      project.hookloop(['sessions', 'delete', 'pay']),
    ])
    running.kill('SIGKILL')
    await running.ended
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      ends.map(() => [5, '']),
    )
    for (const { stderr } of ends) assert.match(stderr, /^error: The session "pay" is locked by process \d+/m)
    const both = await Promise.all([project.start(['resume', 'pay']).ended, project.start(['resume', 'pay']).ended])
    const codes = both.map(({ code }) => code).toSorted((a, b) => a! - b!)
    assert.equal(codes[0], 0, both.map(({ stderr }) => stderr).join('\n'))
    assert.ok(codes[1] === 5 || codes[1] === 2, `the other ended with ${codes[1]}`) // 2 if the first was through already
    assert.deepEqual(project.done(), ['charged', 'charged'])
  })
})
