import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { ScriptedProject } from './scripted-project.fixture.ts'

/** Command lines in an output, as a user would copy them. */
function commandsIn(text: string): readonly (readonly string[])[] {
  const found = [...text.matchAll(/(?:^|\s)(?:hookloop|node \S*hookloop\.mjs) ([^\n]*?)(?=, or |, then |$|\n)/gm)]
  return found.map(([, line]) => line!.split(' ').filter((word) => word !== ''))
}

const agent = ['--agent', 'agent.ts']

describe('every command line that a command prints works as it is printed', { concurrency: 2 }, () => {
  const stores: readonly (readonly [string, readonly string[], ((project: ScriptedProject) => void)?])[] = [
    ['in the default store', []],
    ['in a database', ['--store', 'my.db']],
    [
      'in the store of the agent',
      [],
      (project) =>
        writeFileSync(
          project.path('agent.ts'),
          `import own from './plain.ts'\nimport { sqliteStore } from 'hookloop/sessions'\nexport default { ...own, store: sqliteStore(new URL('own.db', import.meta.url).pathname) }\n`,
        ),
    ],
  ]
  for (const [where, store, prepare] of stores) {
    const project = (): ScriptedProject => {
      const made = new ScriptedProject()
      if (prepare !== undefined) made.keepPlain()
      prepare?.(made)
      return made
    }

    test(`after a completed run ${where}`, async () => {
      const own = project()
      const { stderr } = await own.hookloop(['run', 'hello', ...agent, ...store])
      const [chat] = commandsIn(stderr)
      const continued = await own.hookloop(chat!, { input: 'again\n' })
      assert.deepEqual([continued.code, continued.stdout], [0, 'I heard hello, again\n'])
    })

    test(`after a suspended run ${where}: approve, then resume, then chat`, async () => {
      const own = project()
      const { stderr } = await own.hookloop(['run', 'deploy staging', ...agent, ...store])
      const [approve, block, resume] = commandsIn(stderr)
      assert.deepEqual([approve![0], block![0], resume![0]], ['approve', 'block', 'resume'])
      const approved = await own.hookloop(approve!)
      assert.equal(approved.code, 0, approved.stderr)
      const [advised] = commandsIn(approved.stderr)
      const resumed = await own.hookloop(advised!)
      assert.deepEqual(
        [resumed.code, resumed.stdout, own.done()],
        [0, 'It says: live on staging\n', ['deployed to staging']],
      )
      const again = await own.hookloop(resume!)
      const [chat] = commandsIn(again.stderr)
      assert.equal(chat![0], 'chat')
      assert.equal((await own.hookloop(chat!, { input: 'again\n' })).code, 0)
    })

    test(`explain, approvals and fork ${where}`, async () => {
      const own = project()
      const chosen = prepare === undefined ? store : agent
      await own.hookloop(['run', 'deploy staging', ...agent, ...store, '--session', 'one'])
      const explained = await own.hookloop(['explain', 'one', ...chosen])
      const [approve, resume] = commandsIn(explained.stdout)
      assert.equal((await own.hookloop(approve!)).code, 0)
      assert.equal((await own.hookloop(resume!)).code, 0)
      const forked = await own.hookloop(['fork', 'one', ...chosen])
      const [chat] = commandsIn(forked.stderr)
      assert.equal((await own.hookloop(chat!, { input: 'again\n' })).code, 0)
    })
  }

  test('a session without stored options is resumed with the agent that the command names, or asks for one', async () => {
    const own = new ScriptedProject()
    await own.hookloop(['run', 'deploy staging', ...agent, '--store', 'my.db', '--session', 'one'])
    const other = { env: { XDG_DATA_HOME: own.path('another-user') } } // whose key has not signed the options
    const listed = await own.hookloop(['approvals', '--store', 'my.db'], other)
    const id = /^(\w{8})/.exec(listed.stdout)![1]!
    const approved = await own.hookloop(['approve', id, '--store', 'my.db', ...agent], other)
    const [resume] = commandsIn(approved.stderr)
    const resumed = await own.hookloop(resume!, other)
    assert.deepEqual([resumed.code, resumed.stdout], [0, 'It says: live on staging\n'])
  })
})

describe('an unknown word has a suggestion at every level', { concurrency: 2 }, () => {
  const rows: readonly (readonly [typed: readonly string[], meant: string])[] = [
    [['rnu'], 'run'],
    [['hooks', 'tset'], 'test'],
    [['sessions', 'delte'], 'delete'],
    [['policy', 'bsh'], 'bash'],
    [['run', '--sesion', 'x'], '--session'],
    [['hooks', '--jsn'], '--json'],
    [['hooks', 'test', '--handlr', 'x'], '--handler'],
    [['hooks', 'test', 'PreTolUse'], 'PreToolUse'],
    [['approve', 'x', '--resme'], '--resume'],
    [['explain', '--verbos'], '--verbose'],
  ]
  for (const [typed, meant] of rows) {
    test(`${typed.join(' ')} suggests ${meant}`, async () => {
      const { code, stderr } = await new ScriptedProject().hookloop(typed)
      assert.equal(code, 2)
      assert.match(stderr, new RegExp(`Did you mean ${meant}\\?`))
    })
  }
})
