import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { hook } from '../../core/hooks/hook.ts'
import { approval } from '../approval.ts'
import { fire } from '../../testing/fire.ts'
import { bash } from './bash.ts'
import { bypasses } from './bypass.fixture.ts'
import { securityRows } from './policy/security-rows.fixture.ts'
import { casePolicy, createWorkspace, type RanCommand } from './workspace.fixture.ts'

// Cases B01 to B40 of the security checklist. Each runs the real tool in a real run. They check whether the marker file exists, and
// whether a secret is in the output.

const workspace = createWorkspace()
const { run, work, marker } = workspace
after(workspace.remove)
beforeEach(workspace.unmark)

describe('with the policy of the cases', { concurrency: 1 }, () => {
  test('no command that a row of the policy does not allow runs', async () => {
    const before = workspace.read('a.txt')
    for (const { title, rules, commands } of securityRows.filter(({ verdict }) => verdict !== 'allow')) {
      const executions = await run(commands, rules)
      assert.deepEqual(notBlocked(commands, executions), [], title)
      assert.deepEqual([workspace.isMarked(), workspace.read('a.txt')], [false, before], title)
      assert.doesNotMatch(JSON.stringify(executions), /CANARY/)
    }
  })

  test('B10 variables that one command exports do not reach the next', async () => {
    const executions = await run(['export GIT_EXTERNAL_DIFF="touch $M"', 'git diff'], {}, [approval(() => 'allow')])
    assert.deepEqual([executions.map(({ status }) => status), workspace.isMarked()], [['ok', 'ok'], false])
    assert.match(executions[1]!.output, /^\+b$/m)
  })

  const repositories: readonly { readonly what: string; readonly set: () => void; readonly asks: boolean }[] = [
    {
      what: 'core.fsmonitor',
      set: () => workspace.git('config', 'core.fsmonitor', `touch ${marker};false`),
      asks: false,
    },
    { what: 'core.hooksPath', set: hooksPath, asks: false },
    { what: 'diff.external', set: () => workspace.git('config', 'diff.external', `touch ${marker};false`), asks: true },
    { what: 'textconv', set: textconv, asks: true },
    { what: 'filter.clean', set: cleanFilter, asks: true },
    { what: 'include.path', set: included, asks: true },
    { what: 'a section that a comment seems to swallow', set: commented, asks: true },
  ]
  for (const { what, set, asks } of repositories)
    test(`B18 a repository does not run the programs it names in ${what}`, async (t) => {
      const config = workspace.read('.git/config')
      t.after(() => {
        workspace.write('.git/config', config)
        workspace.write('.gitattributes', '')
      })
      set()
      const executions = await run(['git status', 'git diff', 'git log -1 -p', 'g\\it diff'])
      assert.equal(workspace.isMarked(), false)
      assert.deepEqual(
        executions.map(({ status }) => status),
        Array.from({ length: 4 }, () => (asks ? 'blocked' : 'ok')),
      )
    })

  test('B18 settings of a repository below the folder do not run programs, however a command gets there', async (t) => {
    mkdirSync(join(work, 'a/below/.git'), { recursive: true })
    t.after(() => rmSync(join(work, 'a'), { recursive: true }))
    workspace.write('a/below/.git/config', `[diff]\n\texternal = "touch ${marker};false"\n`)
    const commands = [
      'cd a && cd below && git status',
      'git -C a/below status',
      'git -C a -C below status',
      'cd a && git -C below diff',
      'x=b; git -C a/below log -- "$x"',
      'd=a/below; git -C "$d" status',
      'd=a/below; cd "$d" && git diff',
      'for d in a/*; do (cd "$d" && git diff); done',
      'cd a/x || cd a/below; git diff',
      'echo "$(cd a/below && git diff)"',
    ]
    const executions = await run(commands, { allow: [...casePolicy.allow, 'cd', 'echo', 'git status', 'git log'] })
    assert.deepEqual(
      executions.map(({ status }) => status),
      commands.map(() => 'blocked'),
    )
    assert.equal(workspace.isMarked(), false)
  })

  test('B19 a redirection to a file of data is allowed, and needs approval if the file is a link', async (t) => {
    t.after(() => ['a.log', 'b.log'].forEach((name) => rmSync(join(work, name), { force: true })))
    symlinkSync(marker, join(work, 'b.log'))
    const [plain, link] = await run(['echo x > a.log', 'echo x > b.log'])
    assert.deepEqual([plain!.status, link!.status, workspace.isMarked()], ['ok', 'blocked', false])
    assert.match(link!.output, /b\.log, which is a link or a program/)
  })

  test('B19 a copy needs approval if its target, or a file of its name in the target, is a link', async (t) => {
    mkdirSync(join(work, 'copies/sub'), { recursive: true })
    symlinkSync(marker, join(work, 'copies/b.txt'))
    symlinkSync(marker, join(work, 'copies/a.txt'))
    t.after(() => rmSync(join(work, 'copies'), { recursive: true }))
    const commands = [
      'cp a.txt copies/b.txt',
      'cp a.txt copies/',
      'cp ./*.txt copies/',
      'cd copies && cp sub/x.txt b.txt',
      'mv copies/b.txt copies/c.txt && cp a.txt copies/c.txt',
      'cp a.txt copies/sub/ && cp a.txt copies/d.txt',
    ]
    const executions = await run(commands, { allow: ['cp', 'mv', 'cd'] })
    assert.deepEqual(
      executions.map(({ status }) => status),
      ['blocked', 'blocked', 'blocked', 'blocked', 'blocked', 'ok'],
    )
    assert.equal(workspace.isMarked(), false)
  })

  test('B31 commands that would destroy a machine are blocked even if a rule allows them', async () => {
    const commands = [
      'rm  -rf /',
      'rm -fr /',
      'rm -r -f /',
      'rm --recursive --force /',
      'rm -rf "/"',
      'rm -rf -- /',
      'rm -rf ~',
      'rm -rf $HOME',
      'rm -rf "$EMPTY"/*',
      'find / -delete',
      'sudo rm -R -f /',
      "r''m -rf /",
      'rm\t-rf /',
      'rm -rf ~/',
    ]
    // The guard alone is asked. A test that runs these would be right only as long as it passes.
    const [policy] = bash({ allow: ['rm', 'find', 'sudo'], cwd: work, sandbox: 'off' }).hooks!
    const decisions = await Promise.all(
      commands.map((command) => fire(policy!, 'beforeToolUse', { toolCall: { name: 'bash', args: { command } } })),
    )
    assert.deepEqual(
      commands.filter((_, i) => decisions[i]!.decision !== 'block'),
      [],
    )
  })

  test('B32 safe commands are not blocked because of a word in them', async () => {
    mkdirSync(join(work, 'build'), { recursive: true })
    const commands = [
      'echo "shutdown hook"',
      'grep -rn reboot .',
      'git log --grep=mkfs',
      'grep -E "a|b" a.txt',
      'rm -rf build',
    ]
    const executions = await run(commands, { allow: [...casePolicy.allow, 'rm'], block: [] })
    assert.deepEqual(
      executions.map(({ status }) => status),
      commands.map(() => 'ok'),
    )
  })

  test('B37 an approval is for the command that was shown, and a rewritten command is judged again', async () => {
    const seen: unknown[] = []
    const rewrite = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'uname; echo second' }))
    const ask = approval(({ toolCall }) => {
      seen.push(toolCall.args['command'])
      return 'allow'
    })
    const [execution] = await run(['uname'], {}, [rewrite, ask])
    assert.deepEqual([seen, execution!.status], [['uname; echo second'], 'ok'])
    const [blocked] = await run(['uname'], {}, [
      ask,
      hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'touch "$M"' })),
    ])
    assert.deepEqual([blocked!.status, workspace.isMarked()], ['blocked', false])
  })

  test('B38 an approver sees the hidden parts of a command', async () => {
    const hiding = [`uname x${' '.repeat(500)}; id`, `uname ${'x'.repeat(5_000)}; id`, 'uname \u200D\u202Ex; id']
    const [policy] = bash({ cwd: work, sandbox: 'off' }).hooks!
    const outcomes = await Promise.all(
      hiding.map((command) => fire(policy!, 'beforeToolUse', { toolCall: { name: 'bash', args: { command } } })),
    )
    const [spaces, long, invisible] = outcomes.map((outcome) => JSON.stringify(outcome))
    assert.match(spaces!, /uname x\[500 spaces\]; id/)
    assert.match(long!, /more characters …\]\\nx+; id/)
    assert.doesNotMatch(invisible!, /[\u200D\u202E]/)
  })

  test('B40 start-up files are not run', async () => {
    const [execution] = await run(['echo hi'])
    assert.deepEqual([execution!.output, workspace.isMarked()], ['hi', false])
  })
})

describe('every known bypass', { concurrency: 1 }, () => {
  test(`with the policy of the cases none of ${bypasses.length} creates the marker`, async () => {
    const made: string[] = []
    for (const { name, command } of bypasses) {
      await run([command])
      if (workspace.isMarked()) made.push(name)
      workspace.unmark()
    }
    assert.deepEqual(made, [])
  })

  test('each of them creates the marker, or fails for its own reason, when everything is approved: so the test can fail', async () => {
    const made: string[] = []
    for (const { name, command } of bypasses) {
      await run([command], { allow: [], block: [] }, [approval(() => 'allow')])
      if (workspace.isMarked()) made.push(name)
      workspace.unmark()
    }
    assert.ok(made.length > 40, made.join(' '))
  })
})

function notBlocked(commands: readonly string[], executions: readonly RanCommand[]): readonly string[] {
  return commands.filter((_, i) => executions[i]?.status !== 'blocked' && executions[i]?.status !== 'failed')
}

function hooksPath(): void {
  mkdirSync(join(work, 'evil'), { recursive: true })
  workspace.write('evil/post-index-change', `#!/bin/sh\ntouch ${marker}\n`)
  chmodSync(join(work, 'evil/post-index-change'), 0o755)
  workspace.git('config', 'core.hooksPath', 'evil')
}

function commented(): void {
  workspace.write('.gitattributes', '*.txt diff=x\n')
  const hidden = `# \\\n[diff "x"]\r\n\ttextconv = "touch ${marker};cat"\r\n`
  workspace.write('.git/config', `${workspace.read('.git/config')}${hidden}`)
}

function textconv(): void {
  workspace.write('.gitattributes', '*.txt diff=x\n')
  workspace.git('config', 'diff.x.textconv', `touch ${marker};cat`)
}

function cleanFilter(): void {
  workspace.write('.gitattributes', '*.txt filter=x\n')
  workspace.git('config', 'filter.x.clean', `touch ${marker};cat`)
}

function included(): void {
  workspace.write('more.config', `[core]\n\tsshCommand = touch ${marker}\n`)
  workspace.git('config', 'include.path', join(work, 'more.config'))
}
