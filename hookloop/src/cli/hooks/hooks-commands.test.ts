import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ProjectWithHooks } from './project-with-hooks.fixture.ts'

const judge = { name: 'judge', on: 'beforeToolUse', mode: 'guard', tool: 'work', shell: 'cat > /dev/null; exit 2' }

describe('hookloop hooks list', { concurrency: 2 }, () => {
  test('has every hook of every file, by trigger, in the order in which they fire', async () => {
    const project = new ProjectWithHooks()
    project.ownHooks({ name: 'mine', on: ['beforeToolUse', 'onStop'], mode: 'guard', shell: 'true' })
    project.hooks(
      { name: 'later', on: 'beforeToolUse', mode: 'guard', priority: -5, shell: 'true' },
      judge,
      { name: 'first', on: 'beforeToolUse', mode: 'hook', http: 'https://hooks.example/x' },
      { name: 'watch', on: 'beforeToolUse', mode: 'observe', shell: 'true' },
    )
    const handler = { type: 'command', command: './check.sh' }
    const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [handler] }], WorktreeRemove: [{ hooks: [handler] }] }
    project.write('.claude/settings.json', { hooks })
    const { code, stdout } = await project.hookloop(['hooks', 'list', '--json'])
    const listed = (
      JSON.parse(stdout) as { hooks: { name: string; trigger?: string; trust: string; event?: string }[] }
    ).hooks
    assert.equal(code, 0)
    assert.deepEqual(
      listed.map(({ name, trigger, trust, event }) => [trigger ?? 'never', event ?? name, trust]),
      [
        ['beforeToolUse', 'first', 'untrusted'],
        ['beforeToolUse', 'PreToolUse', 'untrusted'],
        ['beforeToolUse', 'mine', 'own'],
        ['beforeToolUse', 'judge', 'untrusted'],
        ['beforeToolUse', 'later', 'untrusted'],
        ['beforeToolUse', 'watch', 'untrusted'],
        ['onStop', 'mine', 'own'],
        ['never', 'WorktreeRemove', 'untrusted'],
      ],
    )
    const words = await project.hookloop(['hooks'])
    assert.match(words.stdout, /^beforeToolUse\n {2}hook +first .*never fires here\n/s)
  })

  test('ends with 1 and the line when a file cannot be read', async () => {
    const project = new ProjectWithHooks()
    project.write('.hookloop/hooks.yaml', 'hooks:\n  - on: beforeLunch\n    mode: guard\n    shell: x\n')
    const { code, stderr } = await project.hookloop(['hooks', 'list'])
    assert.equal(code, 1)
    assert.match(stderr, /hooks\.yaml:2: there is no trigger "beforeLunch"/)
  })
})

describe('hookloop hooks import', { concurrency: 2 }, () => {
  test('makes a file of ours that decides the same, and says what is gained', async () => {
    const project = new ProjectWithHooks()
    const block = { type: 'command', command: 'cat > /dev/null; echo "Nobody works." >&2; exit 2' }
    const settings = {
      hooks: { PreToolUse: [{ matcher: 'work', hooks: [block] }], WorktreeRemove: [{ hooks: [block] }] },
    }
    project.write('.claude/settings.json', settings)
    const imported = await project.hookloop(['hooks', 'import'])
    assert.equal(imported.code, 0)
    assert.match(imported.stdout, /^1 hooks? .*Gained:.*fail closed.*Left out:\n {2}WorktreeRemove/s)
    rmSync(join(project.dir, '.claude'), { recursive: true })
    await project.trust('--yes')
    const ended = await project.run('work x')
    assert.deepEqual([ended.code, project.marked()], [0, []])
    assert.match(ended.stdout, /Nobody works/)
  })

  test('writes over nothing unless it is told to, and may print instead', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/settings.json', { hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] } })
    const file = project.hooks(judge)
    const before = readFileSync(file, 'utf8')
    const refused = await project.hookloop(['hooks', 'import'])
    const printed = await project.hookloop(['hooks', 'import', '-o', '-'])
    assert.deepEqual([refused.code, readFileSync(file, 'utf8')], [2, before])
    assert.equal((JSON.parse(printed.stdout) as { hooks: { on: string }[] }).hooks[0]!.on, 'onStop')
    const forced = await project.hookloop(['hooks', 'import', '--force', '--json'])
    assert.equal((JSON.parse(forced.stdout) as { hooks: number }).hooks, 1)
    assert.notEqual(readFileSync(file, 'utf8'), before)
  })
})

describe('hookloop hooks doctor', { concurrency: 2 }, () => {
  type Report = {
    readonly guards: readonly { readonly name: string; readonly paths: { readonly [path: string]: string } }[]
    readonly problems: readonly string[]
  }
  const examine = async (project: ProjectWithHooks, ...args: readonly string[]) => {
    const { code, stdout } = await project.hookloop(['hooks', 'doctor', '--json', ...args])
    return { code, ...(JSON.parse(stdout) as Report) }
  }

  test('finds that guards fire exactly once on every path, and nothing real runs', async () => {
    const project = new ProjectWithHooks()
    project.hooks(judge, { name: 'steps', on: ['beforeStep', 'afterToolUse'], mode: 'guard', shell: 'cat > /dev/null' })
    await project.trust('--yes')
    const { code, guards, problems } = await examine(project, '--agent', project.agent)
    const paths = ['run', 'stream', 'iterate', 'parallel', 'resume', 'subagent']
    const ok = Object.fromEntries(paths.map((path) => [path, 'ok']))
    assert.deepEqual([code, problems, project.marked()], [0, [], []])
    assert.deepEqual(
      guards.map((each) => [each.name, each.paths]),
      [
        ['judge', ok],
        ['steps', ok],
      ],
    )
  })

  test('names what is wrong', async () => {
    const project = new ProjectWithHooks()
    const rewriting = (name: string, to: string): object => ({
      name,
      on: 'beforeToolUse',
      mode: 'hook',
      shell: `echo '{"updatedInput":{"to":"${to}"}}'`,
    })
    project.write('check.py', 'pass')
    project.hooks(
      { ...judge, tool: 'Work' },
      { name: 'gone', on: 'onStop', mode: 'guard', shell: './gone.sh --fast' },
      { name: 'script', on: 'onStop', mode: 'guard', shell: 'python3 hooks/gone.py' },
      { name: 'closed', on: 'onStop', mode: 'guard', shell: './check.py' },
      { name: 'unknown', on: 'onStop', mode: 'guard', shell: { args: ['no-such-program-anywhere'] } },
      rewriting('one', 'a'),
      rewriting('two', 'b'),
    )
    project.write('.claude/settings.json', {
      hooks: { WorktreeRemove: [{ hooks: [{ type: 'command', command: 'true' }] }] },
    })
    const untrusted = await examine(project)
    assert.ok(untrusted.problems.some((each) => /hooks\.json is not trusted/.test(each)))
    await project.trust('--yes')
    const { code, problems } = await examine(project, '--agent', project.agent)
    const expected = [
      /"gone" cannot run: ".\/gone\.sh" does not exist/,
      /"script" cannot run: "hooks\/gone\.py" does not exist/,
      /"closed" cannot run: ".\/check\.py" is not executable/,
      /"unknown" cannot run: "no-such-program-anywhere" was not found/,
      /WorktreeRemove of .*settings\.json never fires here/,
      /the guard "judge" is for Work, and no tool is called so; did you mean "work"\?/,
      /"one" and "two" both change args\.to; the last one wins/,
    ]
    assert.equal(code, 1)
    for (const words of expected)
      assert.ok(
        problems.some((each) => words.test(each)),
        `${words}\n${problems.join('\n')}`,
      )
    assert.deepEqual([problems.length, project.marked()], [expected.length, []])
  })

  test('names a file that cannot be read, with the line', async () => {
    const project = new ProjectWithHooks()
    writeFileSync(project.hooks(judge), '{\n"hooks": [{ "on": "nowhere" }]\n}')
    const { code, problems } = await examine(project)
    assert.deepEqual([code, problems.some((each) => /hooks\.json:2: /.test(each))], [1, true])
  })
})
