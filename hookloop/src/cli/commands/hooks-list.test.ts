import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
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

  test('exits with 1 and prints the line of an invalid entry', async () => {
    const project = new ProjectWithHooks()
    project.write('.hookloop/hooks.yaml', 'hooks:\n  - on: beforeLunch\n    mode: guard\n    shell: x\n')
    const { code, stderr } = await project.hookloop(['hooks', 'list'])
    assert.equal(code, 1)
    assert.match(stderr, /hooks\.yaml:2: there is no trigger "beforeLunch"/)
  })
})

describe('hookloop trust', { concurrency: 2 }, () => {
  test('prints everything that would run, each hook once', async () => {
    const project = new ProjectWithHooks()
    const long = `Is it safe? ${'Think. '.repeat(40)}Yes?`
    project.hooks(
      {
        name: 'two',
        on: ['onStop', 'afterStep'],
        mode: 'guard',
        shell: { args: ['sh', '-c', 'exit 0'], passEnv: ['KEY'] },
      },
      { name: 'asks', on: 'beforeToolUse', tool: 'work', mode: 'guard', subagent: { prompt: long, tools: ['bash'] } },
      { name: 'sends', on: 'onStop', mode: 'observe', http: 'https://hooks.example/x?token=abc' },
    )
    const { stdout } = await project.trust('--yes')
    assert.match(
      stdout,
      /\n {2}guard "two" on afterStep, onStop\n {4}sh -c "exit 0"\n {4}with {"passEnv":\["KEY"\]}\n {4}sends KEY\n/,
    )
    assert.equal(stdout.match(/"two"/g)?.length, 1)
    assert.ok(
      stdout.includes(`guard "asks" on beforeToolUse for work\n    agent: ${long}\n    with {"tools":["bash"]}\n`),
    )
    assert.ok(stdout.includes('POST https://hooks.example/x?token=abc'))
  })

  test('reports invalid files, and that no file was trusted', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/settings.json', '{ "hooks": ')
    const { code, stderr } = await project.trust('--yes')
    const revoked = await project.trust('--revoke')
    assert.equal(code, 1)
    assert.match(stderr, /settings\.json: it is not valid JSON/)
    assert.match(revoked.stdout, /^No file in .* was trusted\.\n$/)
  })
})

describe('hookloop hooks import', { concurrency: 2 }, () => {
  test('writes the path of the schema relative to the file, as editors read it', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/settings.json', { hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] } })
    await project.hookloop(['hooks', 'import'])
    await project.hookloop(['hooks', 'import', '-o', 'other.json'])
    const schemaIn = (file: string): unknown =>
      (JSON.parse(readFileSync(join(project.dir, file), 'utf8')) as { $schema: unknown }).$schema
    assert.equal(schemaIn('.hookloop/hooks.json'), '../node_modules/hookloop/hooks.schema.json')
    assert.equal(schemaIn('other.json'), './node_modules/hookloop/hooks.schema.json')
  })

  test('writes a hook file that decides the same, and reports what is gained', async () => {
    const project = new ProjectWithHooks()
    const block = { type: 'command', command: 'cat > /dev/null; echo "Nobody works." >&2; exit 2' }
    const settings = {
      hooks: { PreToolUse: [{ matcher: 'work', hooks: [block] }], WorktreeRemove: [{ hooks: [block] }] },
    }
    project.write('.claude/settings.json', settings)
    const imported = await project.hookloop(['hooks', 'import'])
    assert.equal(imported.code, 0)
    assert.match(
      imported.stdout,
      /^Wrote 1 hook to .*Gained:.*1 of 1 now fails closed.*Left out:\n {2}WorktreeRemove.*run twice/s,
    )
    const doctor = await project.hookloop(['hooks', 'doctor'])
    assert.match(
      doctor.stdout,
      /PreToolUse cat .* runs twice: it is in .claude\/settings.json and in .hookloop\/hooks.json:4/,
    )
    rmSync(join(project.dir, '.claude'), { recursive: true })
    await project.trust('--yes')
    const ended = await project.run('work x')
    assert.deepEqual([ended.code, project.marked()], [0, []])
    assert.match(ended.stdout, /Nobody works/)
  })

  test('leaves out hooks of a skill, which would always apply otherwise', async () => {
    const project = new ProjectWithHooks()
    const hooks = 'hooks:\n  PreToolUse:\n    - hooks:\n        - { type: command, command: exit 2 }'
    project.write('.claude/skills/careful/SKILL.md', `---\nname: careful\ndescription: D.\n${hooks}\n---\nX.`)
    const { code, stdout } = await project.hookloop(['hooks', 'import', '--json'])
    const { hooks: count, leftOut } = JSON.parse(stdout) as { hooks: number; leftOut: string[] }
    assert.deepEqual([code, count], [0, 0])
    assert.match(leftOut.join(), /^PreToolUse exit: it belongs to the skill careful and stays there$/)
  })

  test('overwrites a file only with --force, and can print instead', async () => {
    const project = new ProjectWithHooks()
    project.write('.claude/settings.json', { hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] } })
    const file = project.hooks(judge)
    const before = readFileSync(file, 'utf8')
    const refused = await project.hookloop(['hooks', 'import'])
    const printed = await project.hookloop(['hooks', 'import', '-o', '-'])
    project.write('.claude/settings.local.json', '{')
    const broken = await project.hookloop(['hooks', 'import', '-o', '-'])
    assert.deepEqual([broken.code, broken.stdout], [1, printed.stdout])
    assert.match(broken.stderr, /Not understood:\n.*settings\.local\.json: it is not valid JSON/)
    rmSync(join(project.dir, '.claude', 'settings.local.json'))
    assert.deepEqual([refused.code, readFileSync(file, 'utf8')], [2, before])
    assert.equal((JSON.parse(printed.stdout) as { hooks: { on: string }[] }).hooks[0]!.on, 'onStop')
    const forced = await project.hookloop(['hooks', 'import', '--force', '--json'])
    assert.equal((JSON.parse(forced.stdout) as { hooks: number }).hooks, 1)
    assert.notEqual(readFileSync(file, 'utf8'), before)
  })
})
