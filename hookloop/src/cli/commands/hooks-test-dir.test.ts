import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HookProject } from '../../hook-files/claude/hook-project.fixture.ts'
import type { JsonObject } from '../../values/json.ts'
import { hookloop, type Ended } from '../cli.fixture.ts'

const bash = { tool_name: 'Bash', tool_input: { command: 'ls' } }

function hooks(command: string, event = 'PreToolUse', matcher = 'Bash'): JsonObject {
  return { hooks: { [event]: [{ matcher, hooks: [{ type: 'command', command }] }] } }
}

function head(name: string, command: string): string {
  return `---\nname: ${name}\nargument-hint: [one] [two]\nhooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: ${command}\n---\n`
}

type Tested = Ended & { readonly report: JsonObject & { readonly problems?: readonly string[] } }

async function tested(
  args: readonly string[],
  input: JsonObject | string = bash,
  how: JsonObject = {},
): Promise<Tested> {
  const ended = await hookloop(['hooks', 'test', ...args, '--no-user', '--json'], {
    input: typeof input === 'string' ? input : JSON.stringify(input),
    ...how,
  })
  return { ...ended, report: ended.stdout === '' ? {} : (JSON.parse(ended.stdout) as JsonObject) }
}

describe('--dir of hooks test', { concurrency: 2 }, () => {
  const deny = 'echo "no from ${CLAUDE_PLUGIN_ROOT:-nowhere}" >&2; exit 2'

  function everything(): HookProject {
    const project = new HookProject()
    project.settings({ name: 'p' }, 'plugin/.claude-plugin/plugin.json')
    project.settings(hooks(deny), 'plugin/hooks/hooks.json')
    project.settings(hooks(deny), 'bare/hooks/hooks.json')
    project.settings(hooks(deny), 'repo/.claude/settings.json')
    project.write('repo/.claude/skills/slow/SKILL.md', head('slow', deny))
    return project
  }

  for (const [what, path, plugin] of [
    ['a plugin', 'plugin', 'plugin'],
    ['the folder of its manifest', 'plugin/.claude-plugin', 'plugin'],
    ['a plugin without a manifest', 'bare', 'bare'],
    ['a project', 'repo', undefined],
    ['its .claude', 'repo/.claude', undefined],
  ] as const) {
    test(what, async () => {
      using project = everything()
      const { report } = await tested(['PreToolUse', '--dir', project.path(path)])
      const from = plugin === undefined ? 'nowhere' : project.path(plugin)
      assert.deepEqual([report['decision'], report['reason']], ['deny', `no from ${from}`])
    })
  }

  for (const [what, path] of [
    ['nothing that is there', 'nowhere'],
    ['a script', 'plugin/check.sh'],
  ] as const) {
    test(`${what} is rejected with 2`, async () => {
      using project = everything()
      project.write('plugin/check.sh', 'exit 2\n')
      const { code, stdout, stderr } = await tested(['PreToolUse', '--dir', project.path(path)])
      assert.deepEqual([code === 0, stdout], [false, ''])
      assert.match(stderr, /--dir: /)
    })
  }
})

describe('problems that hooks test reports', { concurrency: 2 }, () => {
  test('invalid settings are in the problems of the report', async () => {
    using project = new HookProject()
    project.write('.claude/settings.json', '{ // why\n }')
    const { report } = await tested(['PreToolUse', '--dir', project.dir])
    assert.match(report.problems?.join() ?? '', /settings\.json: it is not valid JSON/)
  })

  for (const [what, input, said] of [
    ['another tool', { tool_name: 'Read' }, /No PreToolUse hook matches Read/],
    ['a tool that is no name', { tool_name: 5 }, /The event has no "tool_name"/],
    ['no tool', {}, /The event has no "tool_name"/],
  ] as const) {
    test(`the reason why no hook ran is printed: ${what}`, async () => {
      using project = new HookProject()
      project.settings(hooks('exit 2'))
      const { stderr } = await tested(['PreToolUse', '--dir', project.dir], input)
      assert.match(stderr, said)
    })
  }

  test('a secret is passed to a hook only with --pass-env', async () => {
    using project = new HookProject()
    const script = project.write('check.sh', '[ -z "$PAGER_TOKEN" ] || { echo "$PAGER_TOKEN" >&2; exit 2; }\n')
    const how = { env: { PAGER_TOKEN: 'abc', OTHER_TOKEN: 'def' }, cwd: project.dir }
    const args = ['PreToolUse', '--handler', `bash ${script}`]
    const without = await tested(args, bash, how)
    const passed = await tested([...args, '--pass-env', 'PAGER_TOKEN'], bash, how)
    assert.deepEqual([without.report['decision'], passed.report['reason']], ['none', 'abc'])
  })
})
