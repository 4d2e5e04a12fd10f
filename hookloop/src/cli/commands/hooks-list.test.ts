import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
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

  test('notes that permissions of Claude Code are not applied, as does hooks doctor', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/settings.json', { permissions: { deny: ['Bash(rm *)'] } })
    const note = /\.claude\/settings\.json permissions: the rules in "deny" are not applied here; use bash\(/
    const { code, stderr } = await project.hookloop(['hooks', 'list'])
    assert.equal(code, 0)
    assert.match(stderr, note)
    const json = JSON.parse((await project.hookloop(['hooks', 'list', '--json'])).stdout) as { notes: string[] }
    assert.match(json.notes.join(), note)
    const doctor = await project.hookloop(['hooks', 'doctor'])
    assert.equal(doctor.code, 0)
    assert.match(doctor.stdout, note)
  })

  test('exits with 1 and prints the line of an invalid entry', async () => {
    const project = new ProjectWithHooks()
    project.write('.hookloop/hooks.yaml', 'hooks:\n  - on: beforeLunch\n    mode: guard\n    shell: x\n')
    const { code, stderr } = await project.hookloop(['hooks', 'list'])
    assert.equal(code, 1)
    assert.match(stderr, /hooks\.yaml:2: there is no trigger "beforeLunch"/)
  })
})
