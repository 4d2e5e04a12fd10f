import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileTriggers } from '../../hook-files/files/hook-file-schema.ts'
import { specOf } from '../../core/hooks/triggers.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

const judge = { name: 'judge', on: 'beforeToolUse', mode: 'guard', tool: 'work', shell: 'cat > /dev/null; exit 2' }

describe('hookloop hooks list', { concurrency: 2 }, () => {
  test('lists every hook of every file, by trigger, in firing order', async () => {
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
    assert.match(words.stdout, /^beforeToolUse\n {2}hook +first .*never fires in Hookloop\n/s)
  })

  test('notes that permissions of Claude Code are not applied', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/settings.json', { permissions: { deny: ['Bash(rm *)'] } })
    const note = /\.claude\/settings\.json permissions: the rules in "deny" are not applied here; use bash\(/
    const { code, stderr } = await project.hookloop(['hooks', 'list'])
    assert.equal(code, 0)
    assert.match(stderr, note)
    const json = JSON.parse((await project.hookloop(['hooks', 'list', '--json'])).stdout) as { notes: string[] }
    assert.match(json.notes.join(), note)
  })

  type Checked = { readonly checked: readonly { name: string; status: string }[]; readonly problems: readonly string[] }
  const check = async (project: ProjectWithHooks, ...args: readonly string[]) => {
    const { code, stdout } = await project.hookloop(['hooks', 'list', '--check', '--json', ...args])
    const { checked, problems } = JSON.parse(stdout) as Checked
    return { code, problems, status: Object.fromEntries(checked.map(({ name, status }) => [name, status])) }
  }

  test('--check runs each trusted hook once, whatever it decides, and no hook that calls a model', async () => {
    const project = new ProjectWithHooks()
    const shell = `${project.mark('fired')}; exit 2`
    project.hooks(
      { name: 'all', on: fileTriggers.filter((each) => specOf(each).guard.length > 0), mode: 'guard', shell },
      ...fileTriggers.map((on) => ({ name: on, on, mode: 'hook', shell: 'cat > /dev/null' })),
      { name: 'elsewhere', on: 'onStop', mode: 'guard', when: { metadata: { role: 'guest' } }, tool: undefined, shell },
      { name: 'asks', on: 'beforeToolUse', mode: 'guard', prompt: 'Is it safe?' },
    )
    const handler = { type: 'command', command: shell }
    project.write('.claude/settings.json', { hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [handler] }] } })
    assert.deepEqual((await check(project)).status, {})
    await project.trust('--yes')
    const { code, status, problems } = await check(project)
    assert.deepEqual([code, problems, project.marked()], [0, [], ['fired', 'fired', 'fired']])
    assert.deepEqual([...new Set(Object.values(status))], ['ok', 'notRun'])
  })

  test('--check reports hooks that fail, never fire, match no tool or are not trusted', async () => {
    const project = new ProjectWithHooks()
    project.hooks({ ...judge, tool: 'Work' }, { name: 'gone', on: 'onStop', mode: 'guard', shell: './gone.sh' })
    const group = (command: string): object => ({ matcher: 'Nothing', hooks: [{ type: 'command', command }] })
    project.write('.claude/settings.json', {
      hooks: { WorktreeRemove: [group('true')], PreToolUse: [group('true'), group('echo "Broken." >&2; exit 3')] },
    })
    const untrusted = await check(project)
    assert.deepEqual([untrusted.code, untrusted.problems.filter((each) => /is not trusted/.test(each)).length], [1, 2])
    await project.trust('--yes')
    const { code, problems } = await check(project, '--agent', project.agent)
    const expected = [
      /^"judge" is for the tool Work, which the agent does not have\. Did you mean "work"\?$/,
      /^"gone" fails, so it blocks: .*127/,
      /^"PreToolUse true" is for the tool Nothing/,
      /^"PreToolUse echo .*" is for the tool Nothing/,
      /^"PreToolUse echo .*" fails: .*Broken\./,
      /^WorktreeRemove in .*settings\.json never fires/,
    ]
    assert.equal(code, 1)
    for (const [i, words] of expected.entries()) assert.match(problems[i] ?? '', words)
    assert.equal(problems.length, expected.length)
  })
})
