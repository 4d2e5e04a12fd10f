import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { ScriptedProject, type Result } from '../scripted-project.fixture.ts'

const project = new ScriptedProject()
const agent = ['--agent', 'agent.ts']

type Listed = { readonly id: string; readonly status: string; readonly title: string }

async function listed(flags: readonly string[] = [], within = project): Promise<readonly Listed[]> {
  const { code, stdout, stderr } = await within.hookloop(['sessions', '--json', ...flags])
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as readonly Listed[]
}

describe('hookloop run', { concurrency: 2 }, () => {
  test('stores the session under an id that it prints, readable by this user only', async () => {
    const { stderr } = await project.hookloop(['run', 'hello', ...agent])
    const [, id] = /^saved as (\S+) · continue with: .* chat --session \1$/m.exec(stderr) ?? []
    const found = (await listed()).find((each) => each.id === id)
    assert.deepEqual([found?.status, found?.title], ['completed', 'hello'])
    const modes = ['data/hookloop', 'data/hookloop/sessions.db', 'data/hookloop/cli.key'].map(
      (path) => statSync(project.path(path)).mode & 0o777,
    )
    assert.deepEqual(modes, [0o700, 0o600, 0o600])
  })

  test('continues a session with the agent stored in it', async () => {
    await project.hookloop(['run', 'one', ...agent, '--session', 'talk'])
    const { stdout } = await project.hookloop(['run', 'two', '--session', 'talk', '--quiet'])
    assert.equal(stdout, 'I heard one, two\n')
  })

  test('reports that the agent file has changed', async () => {
    const other = new ScriptedProject()
    await other.hookloop(['run', 'one', ...agent, '--session', 'talk'])
    appendFileSync(other.agent, '// changed\n')
    const { code, stderr } = await other.hookloop(['run', 'two', '--session', 'talk'])
    assert.equal(code, 0)
    assert.match(stderr, /^agent\.ts has changed since the session was started\.$/m)
  })

  for (const [what, flags, env] of [
    ['--no-store', ['--no-store'], {}],
    ['HOOKLOOP_STORE=none', [], { HOOKLOOP_STORE: 'none' }],
  ] as const) {
    test(`stores nothing with ${what}`, async () => {
      const other = new ScriptedProject()
      const { code, stderr } = await other.hookloop(['run', 'hello', ...agent, ...flags], { env })
      assert.equal(code, 0)
      assert.doesNotMatch(stderr, /saved as/)
      assert.equal(existsSync(other.path('data')), false)
    })
  }

  for (const where of ['sessions.sqlite', 'folder/of/sessions']) {
    test(`stores sessions in ${where}, named by --store or HOOKLOOP_STORE`, async () => {
      const other = new ScriptedProject({ HOOKLOOP_STORE: where })
      await other.hookloop(['run', 'hello', ...agent, '--session', 'talk', '--store', where])
      assert.deepEqual(
        (await listed([], other)).map(({ id }) => id),
        ['talk'],
      )
      assert.ok(existsSync(other.path(where)))
    })
  }

  for (const exported of ['given', 'createAgent(given)']) {
    test(`uses the store of the agent file by default: export default ${exported}`, async () => {
      const other = new ScriptedProject()
      const code = `import { createAgent } from 'hookloop'
      import { sqliteStore } from 'hookloop/sessions'
      import options from './agent.ts'
      const given = { ...options, store: sqliteStore('own.db') }
      export default ${exported}`
      writeFileSync(other.path('own.ts'), code)
      await other.hookloop(['run', 'hello', '--agent', 'own.ts', '--session', 'talk'])
      const [own, usual] = await Promise.all([listed(['--agent', 'own.ts'], other), listed([], other)])
      assert.deepEqual([own.length, usual.length, existsSync(other.path('own.db'))], [1, 0, true])
    })
  }

  test('runs if the default store cannot be written, and exits with 2 if --store cannot', async () => {
    writeFileSync(project.path('file'), '')
    const [usual, named] = await Promise.all([
      project.hookloop(['run', 'hello', ...agent], { env: { XDG_DATA_HOME: project.path('file') } }),
      project.hookloop(['run', 'hello', ...agent, '--store', 'file/sessions.db']),
    ])
    assert.deepEqual([usual.code, usual.stdout, named.code, named.stdout], [0, 'I heard hello\n', 2, ''])
    assert.match(usual.stderr, /^This run is not saved: /)
  })

  test('rejects an unknown kind of store, and does not print a password', async () => {
    const [mysql, postgres] = await Promise.all([
      project.hookloop(['run', 'hello', ...agent, '--store', 'mysql://u:hunter2@h/d']),
      project.hookloop(['run', 'hello', ...agent, '--store', 'postgres://u:hunter2@127.0.0.1:9/d']),
    ])
    assert.deepEqual([mysql.code, postgres.code], [2, 2])
    assert.match(mysql.stderr, /^error: --store must be a file such as sessions\.db, or postgres:/)
    assert.ok(!`${mysql.stderr}${postgres.stderr}`.includes('hunter2'))
  })
})

test('the agent file named by a session of another user is not run', async () => {
  const [theirs, mine] = [new ScriptedProject(), new ScriptedProject()]
  await theirs.hookloop(['run', 'hello', ...agent, '--session', 'talk'])
  await theirs.hookloop(['export', 'talk', '--no-redact', '-o', 'talk.jsonl'])
  await mine.hookloop(['import', '-'], { input: readFileSync(theirs.path('talk.jsonl')) })
  const [run, chat, named] = await Promise.all([
    mine.hookloop(['run', 'again', '--session', 'talk']),
    mine.hookloop(['chat', '--session', 'talk'], { input: 'again\n' }),
    mine.hookloop(['fork', 'talk', '--as', 'copy']),
  ])
  assert.deepEqual([run.code, run.stdout, chat.code, chat.stdout, named.code], [2, '', 2, '', 0])
  assert.match(run.stderr, /was not started by this user, .* They are: --agent \S*agent\.ts\. Name the agent with/)
  const { last } = await mine.result(['run', 'again', '--session', 'copy', ...agent])
  assert.equal(last.text, 'I heard hello, again')
})

test('the options of the command line apply again when a session continues', async () => {
  await project.hookloop(['run', 'one', ...agent, '--session', 'limited', '--max-steps', '1'])
  const { code, last } = await project.result(['run', 'charge', '--session', 'limited'])
  assert.deepEqual([code, (last as Result & { by: string }).by], [3, 'guards.maxSteps'])
})
