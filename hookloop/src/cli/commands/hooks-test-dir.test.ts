import assert from 'node:assert/strict'
import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, test } from 'node:test'
import { holds, HookProject, prints } from '../../hook-files/claude/hook-project.fixture.ts'
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

  test('a plugin runs in the project of the event', async () => {
    using project = everything()
    project.settings(hooks('echo "$CLAUDE_PROJECT_DIR $(pwd)" >&2; exit 2'), 'plugin/hooks/hooks.json')
    const cwd = realpathSync(project.path('repo'))
    const { report } = await tested(['PreToolUse', '--dir', project.path('plugin')], { ...bash, cwd })
    assert.equal(report['reason'], `${cwd} ${cwd}`)
  })

  test('settings and the hook scripts beside them belong to one project', async () => {
    using project = everything()
    project.write('repo/.claude/hooks/check.sh', 'echo found >&2; exit 2\n')
    project.settings(hooks('bash "$CLAUDE_PROJECT_DIR/.claude/hooks/check.sh"'), 'repo/install/settings-linux.json')
    const { report } = await tested(['PreToolUse', '--dir', project.path('repo/install/settings-linux.json')])
    assert.equal(report['reason'], 'found')
  })

  test('a command of a plugin gets the folder of the plugin', async () => {
    using project = everything()
    project.write('plugin/check.sh', 'exit 2\n')
    const args = ['--dir', project.path('plugin'), '--handler', 'bash "${CLAUDE_PLUGIN_ROOT}/check.sh"']
    assert.equal((await tested(['PreToolUse', ...args])).report['decision'], 'deny')
  })

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

describe('the folder in which hooks test runs hooks', { concurrency: 2 }, () => {
  test('a script is found by its path in the project, whatever folder the event names', async () => {
    using project = new HookProject()
    project.write('hooks/check.sh', 'pwd -P >&2; exit 2\n')
    project.settings(hooks('bash hooks/check.sh'))
    const { report } = await tested(['PreToolUse', '--dir', project.dir], { ...bash, cwd: tmpdir() })
    assert.equal(report['reason'], realpathSync(project.dir))
  })

  test('with --handler the project is the folder that the event names', async () => {
    using project = new HookProject()
    const handler = 'echo "$CLAUDE_PROJECT_DIR" >&2; exit 2'
    const { report } = await tested(['PreToolUse', '--handler', handler], { ...bash, cwd: project.dir })
    assert.equal(report['reason'], project.dir)
  })

  test('a script in --handler is found in the current folder', async () => {
    using project = new HookProject()
    using elsewhere = new HookProject()
    elsewhere.write('hooks/check.sh', 'echo "$CLAUDE_PROJECT_DIR" >&2; exit 2\n')
    const args = ['PreToolUse', '--dir', project.dir, '--handler', 'bash hooks/check.sh']
    assert.equal((await tested(args, bash, { cwd: elsewhere.dir })).report['reason'], project.dir)
  })

  test('the project is the current folder if the script is there', async () => {
    using project = new HookProject()
    project.write('.claude/hooks/check.sh', 'echo "$CLAUDE_PROJECT_DIR" >&2; exit 2\n')
    const handler = 'bash "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh'
    const how = { cwd: realpathSync(project.dir) }
    const { report } = await tested(['PreToolUse', '--handler', handler], { ...bash, cwd: tmpdir() }, how)
    assert.equal(report['reason'], realpathSync(project.dir))
  })
})

describe('an incomplete event of hooks test', { concurrency: 2 }, () => {
  test('has the source startup by default', async () => {
    using project = new HookProject()
    project.settings(hooks(prints('`by ${e.source}`'), 'SessionStart', 'startup|resume'))
    const { report } = await tested(['SessionStart', '--dir', project.dir], {})
    assert.deepEqual([report['decision'], report['additionalContext']], ['context', 'by startup'])
  })

  test('gets the fields that scripts expect', async () => {
    const handler = `${holds('e.stop_hook_active === false && e.permission_mode === "default"')} && exit 2`
    assert.equal((await tested(['Stop', '--handler', handler], {})).report['decision'], 'block')
  })

  test('can start with a byte order mark', async () => {
    const { report } = await tested(['PreToolUse', '--handler', 'exit 2'], `\uFEFF${JSON.stringify(bash)}`)
    assert.equal(report['decision'], 'deny')
  })

  test('keeps unknown fields', async () => {
    const handler = `${holds('e.prompt === "a" && e.input === "b" && e.toolCall === 1')} && exit 2`
    const { report } = await tested(['UserPromptSubmit', '--handler', handler], {
      prompt: 'a',
      input: 'b',
      toolCall: 1,
    })
    assert.equal(report['decision'], 'block')
  })
})

describe('problems that hooks test reports', { concurrency: 2 }, () => {
  test('invalid settings are in the problems of the report', async () => {
    using project = new HookProject()
    project.write('.claude/settings.json', '{ // why\n }')
    const { report } = await tested(['PreToolUse', '--dir', project.dir])
    assert.match(report.problems?.join() ?? '', /settings\.json: it is not valid JSON/)
  })

  test('a folder without hooks is in the problems of the report', async () => {
    using project = new HookProject()
    const { report } = await tested(['PreToolUse', '--dir', project.dir])
    assert.deepEqual(report.problems, [`No hooks found in ${project.dir}.`])
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

  test('the reason why no hook ran is printed: another event', async () => {
    using project = new HookProject()
    project.settings(hooks('exit 2'))
    assert.match((await tested(['Stop', '--dir', project.dir], {})).stderr, /No hook handles Stop, only PreToolUse/)
  })

  test('the reason why no hook ran is printed: an inactive skill', async () => {
    using project = new HookProject()
    project.write('.claude/skills/careful/SKILL.md', head('careful', 'exit 2'))
    assert.match((await tested(['PreToolUse', '--dir', project.dir])).stderr, /SKILL\.md are not active/)
  })

  test('a variable that is never set is reported', async () => {
    const { stderr } = await tested(['PreToolUse', '--handler', 'test -n "$CLAUDE_TOOL_FILE_PATH"'])
    assert.match(stderr, /CLAUDE_TOOL_FILE_PATH is not set/)
  })

  test('a variable that a script sets itself, or has a default for, is not reported', async () => {
    using project = new HookProject()
    const scripts = [
      'CLAUDE_SESSION_ID=$(jq -r .session_id); echo "$CLAUDE_SESSION_ID"',
      'echo "${CLAUDE_SESSION_ID:-none}"',
      '# CLAUDE_SESSION_ID is not set in hooks\ntrue',
      'if [ -n "$CLAUDE_SESSION_ID" ]; then echo "$CLAUDE_SESSION_ID"; fi',
    ]
    for (const [i, text] of scripts.entries()) {
      const script = project.write(`${i}.sh`, `${text}\n`)
      const { stderr } = await tested(['PreToolUse', '--handler', `bash ${script}`], bash, { cwd: project.dir })
      assert.doesNotMatch(stderr, /is not set/, text)
    }
    const reads = project.write('reads.sh', 'echo "$CLAUDE_SESSION_ID"\n')
    const { stderr } = await tested(['PreToolUse', '--handler', `bash ${reads}`], bash, { cwd: project.dir })
    assert.match(stderr, /CLAUDE_SESSION_ID is not set/)
  })

  test('a secret that a script reads is reported, and passed with --pass-env', async () => {
    using project = new HookProject()
    const script = project.write('check.sh', '[ -z "$PAGER_TOKEN" ] || { echo "$PAGER_TOKEN" >&2; exit 2; }\n')
    const how = { env: { PAGER_TOKEN: 'abc', OTHER_TOKEN: 'def' }, cwd: project.dir }
    const args = ['PreToolUse', '--handler', `bash ${script}`]
    const without = await tested(args, bash, how)
    const passed = await tested([...args, '--pass-env', 'PAGER_TOKEN'], bash, how)
    assert.deepEqual([without.report['decision'], passed.report['reason']], ['none', 'abc'])
    assert.match(without.stderr, /PAGER_TOKEN is not passed to hooks/)
    assert.doesNotMatch(without.stderr + passed.stderr, /OTHER_TOKEN|abc/)
  })
})
