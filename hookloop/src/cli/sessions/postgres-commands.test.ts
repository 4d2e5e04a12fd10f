import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startPostgres, type PostgresServer } from '../../sessions/stores/postgres.fixture.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const PASSWORD = 'never-print-this'
const agent = ['--agent', 'agent.ts']
let server: PostgresServer
let store: readonly string[]

before(async () => {
  server = await startPostgres()
  store = ['--store', server.connectionString.replace('hookloop@', `hookloop:${PASSWORD}@`)]
})
after(() => server.stop())

/** Runs commands, and keeps everything that they print. */
class Commands {
  readonly project = new ScriptedProject()
  printed = ''

  async ended(
    ...args: readonly string[]
  ): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
    const ended = await this.project.hookloop([...args, ...store])
    this.printed += ended.stdout + ended.stderr
    return ended
  }

  async code(...args: readonly string[]): Promise<number | null> {
    return (await this.ended(...args)).code
  }
}

describe('commands with --store postgres://…', () => {
  test('run, list, follow, answer, resume, stop and explain sessions in a database, and never print the password', async () => {
    const commands = new Commands()
    assert.equal(await commands.code('run', 'deploy x', ...agent, '--session', 'ship'), 4)
    assert.equal(await commands.code('run', 'one', ...agent, '--session', 'done'), 0)
    const open = await commands.ended('sessions', '--open', '--json')
    const [listed, ...others] = JSON.parse(open.stdout) as { id: string; status: string; pending: { id: string }[] }[]
    assert.deepEqual([listed?.id, listed?.status, others], ['ship', 'suspended', []])
    const read = [
      ['sessions'],
      ['approvals'],
      ['explain', 'ship'],
      ['steps', 'done'],
      ['export', 'done'],
      ['diff', 'done', 'ship'],
    ]
    for (const args of [...read, ['watch', 'done', '--no-follow'], ['fork', 'done', '--as', 'copy']])
      assert.equal(await commands.code(...args), 0, args.join(' '))
    assert.equal(await commands.code('approve', listed!.pending[0]!.id), 0)
    assert.equal(await commands.code('stop', 'ship'), 0)
    assert.equal(await commands.code('resume', 'ship', ...agent), 3)
    assert.match((await commands.ended('explain', 'ship')).stdout, /^The run was stopped on request of /)
    assert.deepEqual(commands.project.done(), [])
    assert.equal(await commands.code('sessions', 'delete', 'ship', 'done', 'copy'), 0)
    assert.ok(!commands.printed.includes(PASSWORD))
  })

  test('say that the database cannot be reached, and where it was looked for', async () => {
    const project = new ScriptedProject()
    const away = `postgres://jane:${PASSWORD}@localhost:1/agents`
    const commands = [
      ['sessions'],
      ['stop', 'x'],
      ['studio', '--no-open'],
      ['serve', 'agent.ts', '--port', '0'],
      ['run', 'one', ...agent],
    ]
    for (const args of commands) {
      const { code, stdout, stderr } = await project.hookloop([...args, '--store', away])
      assert.deepEqual([args[0], code, stdout], [args[0], 2, ''])
      assert.match(stderr, /^error: The database at localhost:1\/agents cannot be used: .*ECONNREFUSED.*\n$/)
      assert.ok(!stderr.includes(PASSWORD))
    }
  })

  test('reject an address that is not a URL without repeating it', async () => {
    const project = new ScriptedProject()
    for (const bad of [`postgres://jane:${PASSWORD}@host:port/x`, `postgres://jane:${PASSWORD}/#@[x`]) {
      const { code, stderr } = await project.hookloop(['sessions', '--store', bad])
      assert.equal(code, 2)
      assert.match(stderr, /^error: The address of the database is not a URL\. It must be like postgres:/)
      assert.ok(!stderr.includes(PASSWORD))
    }
  })
})
