import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
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
