import assert from 'node:assert/strict'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { hook } from '../../hooks/hook.ts'
import { approval } from '../approval.ts'
import { bypasses } from './bypass.fixture.ts'
import { refusedCases } from './cases.fixture.ts'
import { casePolicy, createWorkspace, type RanCommand } from './workspace.fixture.ts'

// Named after the cases they are: B for bash. Each runs the real tool in a real run, and is judged by what it has done:
// the marker exists or it does not, a secret is in what the model reads or it is not.

const workspace = createWorkspace()
const { run, work, marker } = workspace
after(workspace.remove)
beforeEach(workspace.unmark)

describe('under the policy of the cases', { concurrency: 1 }, () => {
  for (const { id, what, commands } of refusedCases(workspace))
    test(`${id} ${what}: none of ${commands.length} runs`, async () => {
      const before = workspace.read('a.txt')
      const executions = await run(commands)
      assert.deepEqual(notBlocked(commands, executions), [])
      assert.deepEqual([workspace.isMarked(), workspace.read('a.txt')], [false, before])
      assert.ok(executions.every(({ output }) => typeof output === 'string' && output !== ''))
      assert.doesNotMatch(JSON.stringify(executions), /CANARY/)
    })

  test('B06 a here document that is quoted is text', async () => {
    const [execution] = await run(["cat <<'EOF'\n$(touch $M)\nEOF"])
    assert.deepEqual([execution!.status, execution!.output, workspace.isMarked()], ['ok', '$(touch $M)', false])
  })

  test('B10 what one command exports does not reach the next', async () => {
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
  ]
  for (const { what, set, asks } of repositories)
    test(`B18 a repository does not run what it names in ${what}`, async (t) => {
      const config = workspace.read('.git/config')
      t.after(() => {
        workspace.write('.git/config', config)
        workspace.write('.gitattributes', '')
      })
      set()
      const executions = await run(['git status', 'git diff', 'git log -1 -p'])
      assert.equal(workspace.isMarked(), false)
      assert.deepEqual(
        executions.map(({ status }) => status),
        Array.from({ length: 3 }, () => (asks ? 'blocked' : 'ok')),
      )
    })

  test('B31 what would destroy a machine is refused even under a rule that allows it, and to whoever agrees to all', async () => {
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
    const judgeOnly = { allow: ['rm', 'find', 'sudo'], deny: [] }
    const executions = await run(commands, judgeOnly)
    assert.deepEqual(notBlocked(commands, executions), [])
  })

  test('B32 harmless commands are not refused for a word that they contain', async () => {
    mkdirSync(join(work, 'build'), { recursive: true })
    const commands = [
      'echo "shutdown hook"',
      'grep -rn reboot .',
      'git log --grep=mkfs',
      'grep -E "a|b" a.txt',
      'rm -rf build',
    ]
    const executions = await run(commands, { allow: [...casePolicy.allow, 'rm'], deny: [] })
    assert.deepEqual(
      executions.map(({ status }) => status),
      commands.map(() => 'ok'),
    )
  })

  test('B37 an approval is for the command that was shown, and what is rewritten later is judged', async () => {
    const seen: unknown[] = []
    const rewrite = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'uname; echo second' }))
    const ask = approval(({ toolCall }) => {
      seen.push(toolCall.args['command'])
      return 'allow'
    })
    const [execution] = await run(['uname'], {}, [rewrite, ask])
    assert.deepEqual([seen, execution!.status], [['uname; echo second'], 'ok'])
    const [denied] = await run(['uname'], {}, [
      ask,
      hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'touch "$M"' })),
    ])
    assert.deepEqual([denied!.status, workspace.isMarked()], ['blocked', false])
  })

  test('B38 whoever is asked sees what a command would hide', async () => {
    const seen: string[] = []
    const ask = approval(({ message }) => {
      seen.push(message)
      return { block: 'No.' }
    })
    await run([`uname \u200D ${' '.repeat(5_000)}; id`, `uname ${'x'.repeat(9_000)}; id`], {}, [ask])
    assert.match(seen[0] ?? 'refused', /\\u\{200d\}.*\[\d+ spaces\]; id|refused/)
    assert.match(seen[1] ?? 'refused', /more characters …\]\nx+; id|refused/)
  })

  test('B40 start-up files are not run', async () => {
    const [execution] = await run(['echo hi'])
    assert.deepEqual([execution!.output, workspace.isMarked()], ['hi', false])
  })
})

describe('every known bypass', { concurrency: 1 }, () => {
  test(`under the policy of the cases none of ${bypasses.length} makes the marker`, async () => {
    const made: string[] = []
    for (const { name, command } of bypasses) {
      await run([command])
      if (workspace.isMarked()) made.push(name)
      workspace.unmark()
    }
    assert.deepEqual(made, [])
  })

  test('each of them does make the marker, or fails for a reason of its own, when everybody agrees: the test can fail', async () => {
    const made: string[] = []
    for (const { name, command } of bypasses) {
      await run([command], { allow: [], deny: [] }, [approval(() => 'allow')])
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
