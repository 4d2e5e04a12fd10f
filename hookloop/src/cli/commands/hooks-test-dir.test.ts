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
    project.settings(hooks(deny), 'dotfiles/settings.json')
    project.settings(hooks(deny), 'dotfiles/settings.local.json')
    project.settings(hooks(deny), 'anywhere/team.json')
    project.write('plugin/skills/slow/SKILL.md', head('slow', deny))
    project.write('heads/.claude/skills/careful/SKILL.md', head('careful', deny))
    project.write('heads/.claude/commands/release/ship.md', head('ship', deny))
    project.write('heads/.claude/agents/team/reviewer.md', head('reviewer', deny))
    return project
  }

  for (const [what, path, plugin] of [
    ['the folder of a plugin', 'plugin', 'plugin'],
    ['its folder of hooks', 'plugin/hooks', 'plugin'],
    ['its file of hooks', 'plugin/hooks/hooks.json', 'plugin'],
    ['its manifest', 'plugin/.claude-plugin/plugin.json', 'plugin'],
    ['the folder of its manifest', 'plugin/.claude-plugin', 'plugin'],
    ['a plugin without a manifest', 'bare', 'bare'],
    ['the hooks of one without a manifest', 'bare/hooks/hooks.json', 'bare'],
    ['a project', 'repo', undefined],
    ['its .claude', 'repo/.claude', undefined],
    ['its settings', 'repo/.claude/settings.json', undefined],
    ['a folder with the layout of .claude', 'dotfiles', undefined],
    ['settings of any name', 'anywhere/team.json', undefined],
    ['a skill', 'heads/.claude/skills/careful/SKILL.md', undefined],
    ['a command', 'heads/.claude/commands/release/ship.md', undefined],
    ['a skill of a plugin', 'plugin/skills/slow/SKILL.md', 'plugin'],
    ['an agent', 'heads/.claude/agents/team/reviewer.md', undefined],
  ] as const) {
    test(what, async () => {
      using project = everything()
      const { report } = await tested(['PreToolUse', '--dir', project.path(path)])
      const from = plugin === undefined ? 'nowhere' : project.path(plugin)
      assert.deepEqual([report['decision'], report['reason']], ['deny', `no from ${from}`])
    })
  }

  test('a marketplace is reported, and none of its plugins runs', async () => {
    using project = everything()
    project.settings({ plugins: [{ name: 'p', source: './plugin' }] }, '.claude-plugin/marketplace.json')
    const { report } = await tested(['PreToolUse', '--dir', project.dir])
    assert.match(report.problems?.join() ?? '', /is a marketplace.*use the folder of a plugin/)
  })

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
