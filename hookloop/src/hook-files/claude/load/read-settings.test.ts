import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import { HookProject, contextIn } from '../hook-project.fixture.ts'
import { HookTable, runEvent } from '../run/run-event.ts'
import { readSettings, type Settings, type SettingsPlaces } from './read-settings.ts'
import { examplePayload } from '../events/example-payload.ts'

const hooks = (command: string): JsonObject => ({ Stop: [{ hooks: [{ type: 'command', command }] }] })

/** A project, a home, an organisation and a plugin, each with one hook. */
function everything(project: HookProject, more: { readonly [kind: string]: JsonObject } = {}): SettingsPlaces {
  project.settings({ hooks: hooks('managed'), ...more['managed'] }, 'managed.json')
  project.settings({ hooks: hooks('user'), ...more['user'] }, 'home/.claude/settings.json')
  project.settings({ hooks: hooks('project'), ...more['project'] }, 'repo/.claude/settings.json')
  project.settings({ hooks: hooks('local'), ...more['local'] }, 'repo/.claude/settings.local.json')
  project.settings({ description: 'd', hooks: hooks('plugin') }, 'plugin/hooks/hooks.json')
  return {
    dir: project.path('repo'),
    home: project.path('home'),
    managed: project.path('managed.json'),
    plugins: [project.path('plugin')],
    settings: { hooks: hooks('given'), ...more['given'] },
  }
}

function commandsOf({ groups }: Settings): readonly string[] {
  return groups.flatMap(({ handlers }) => handlers.map((each) => (each.type === 'command' ? each.command : each.type)))
}

describe('sources of hooks', () => {
  test('hooks of all sources are combined', () => {
    using project = new HookProject()
    assert.deepEqual(commandsOf(readSettings(everything(project))), [
      'managed',
      'user',
      'project',
      'local',
      'given',
      'plugin',
    ])
  })

  const switches: readonly (readonly [string, { readonly [kind: string]: JsonObject }, readonly string[]])[] = [
    ['disableAllHooks of the organisation turns off all', { managed: { disableAllHooks: true } }, []],
    ['disableAllHooks of the user leaves those of the organisation', { user: { disableAllHooks: true } }, ['managed']],
    ['disableAllHooks given in code does so too', { given: { disableAllHooks: true } }, ['managed']],
    [
      'settings in code override settings of the user',
      { user: { disableAllHooks: true }, given: { disableAllHooks: false } },
      ['managed', 'user', 'project', 'local', 'given', 'plugin'],
    ],
    [
      'disableAllHooks of a project is about its own hooks',
      { project: { disableAllHooks: true } },
      ['managed', 'user', 'given', 'plugin'],
    ],
    [
      'its local settings stand above it',
      { project: { disableAllHooks: true }, local: { disableAllHooks: false } },
      ['managed', 'user', 'project', 'local', 'given', 'plugin'],
    ],
    [
      'allowManagedHooksOnly leaves those of the organisation',
      { managed: { allowManagedHooksOnly: true } },
      ['managed'],
    ],
    [
      'allowManagedHooksOnly is a word of the organisation',
      { project: { allowManagedHooksOnly: true } },
      ['managed', 'user', 'project', 'local', 'given', 'plugin'],
    ],
    [
      'strictPluginOnlyCustomization leaves plugins and the organisation',
      { managed: { strictPluginOnlyCustomization: ['hooks'] } },
      ['managed', 'plugin'],
    ],
  ]
  for (const [title, more, left] of switches) {
    test(title, () => {
      using project = new HookProject()
      assert.deepEqual(commandsOf(readSettings(everything(project, more))), left)
    })
  }

  test('a URL that is on no list gets no request', async () => {
    using project = new HookProject()
    project.settings({
      allowedHttpHookUrls: ['https://hooks.example/*'],
      hooks: { PreToolUse: [{ hooks: [{ type: 'http', url: 'https://hooks.example.evil.test/x' }] }] },
    })
    const { allowedHttpUrls } = readSettings({ dir: project.dir, home: false })
    const { ran } = await project.fire('PreToolUse', { tool_name: 'Bash' }, { allowedHttpUrls })
    assert.match(ran[0]!.answer.problem!, /not allowed by "allowedHttpHookUrls"/)
  })

  test('a project cannot extend the list of URLs of its user', () => {
    using project = new HookProject()
    const places = everything(project, {
      user: { allowedHttpHookUrls: ['https://a/*'] },
      project: { allowedHttpHookUrls: ['https://evil/*'] },
    })
    assert.deepEqual(readSettings(places).allowedHttpUrls, ['https://a/*'])
  })
})

describe('env in settings', () => {
  test('env applies to hooks of the same file, and env of the user to all hooks', async () => {
    using project = new HookProject()
    project.settings(
      { hooks: hooks('printf "%s %s;" "$TEAM" "$LEVEL" >> user'), env: { LEVEL: 1 } },
      '.claude/settings.json',
    )
    project.settings(
      { hooks: hooks('printf "%s %s;" "$TEAM" "$LEVEL" >> seen'), env: { TEAM: 'red' } },
      'repo/.claude/settings.json',
    )
    const dir = project.path('repo')
    const { groups } = readSettings({ dir, home: project.dir })
    await runEvent(new HookTable(groups), examplePayload({}, 'Stop', dir), { context: contextIn(dir) })
    const read = (name: string): string => readFileSync(project.path(`repo/${name}`), 'utf8')
    assert.deepEqual([read('user'), read('seen')], [' 1;', 'red 1;'])
  })
})

describe('invalid settings', () => {
  test('an unknown event is left out and reported, and the others apply', () => {
    using project = new HookProject()
    project.settings({ hooks: { ...hooks('ok'), PreTooluse: [], PostToolUs: [], Nonsense: [] } })
    const settings = readSettings({ dir: project.dir, home: false })
    assert.deepEqual(commandsOf(settings), ['ok'])
    assert.match(
      settings.problems.map(({ message }) => message).join('\n'),
      /did you mean PreToolUse\?\n.*did you mean PostToolUse\?\nit is not an event$/,
    )
  })

  const wrong: readonly (readonly [string, JsonObject])[] = [
    ['a time that is no number', { type: 'command', command: 'x', timeout: 'thirty' }],
    ['a type that is none', { type: 'shell', command: 'x' }],
    ['a command that is missing', { type: 'command' }],
    ['an address that is none', { type: 'http', url: 'nowhere' }],
    ['a protocol that is not http', { type: 'http', url: 'file:///etc/passwd' }],
    ['arguments that are no texts', { type: 'command', command: 'x', args: [1] }],
    ['a policy that is none', { type: 'command', command: 'x', onFailure: 'deny' }],
    ['a shell that is none', { type: 'command', command: 'x', shell: 'fish' }],
  ]
  for (const [what, handler] of wrong) {
    test(`a handler with ${what} is left out alone`, () => {
      using project = new HookProject()
      project.settings({ hooks: { Stop: [{ hooks: [handler, { type: 'command', command: 'ok' }] }] } })
      const settings = readSettings({ dir: project.dir, home: false })
      assert.deepEqual([commandsOf(settings), settings.problems.length], [['ok'], 1])
    })
  }

  test('an invalid JSON file is reported, and the others are read', () => {
    using project = new HookProject()
    project.settings({ hooks: hooks('local') }, '.claude/settings.local.json')
    project.write('.claude/settings.json', '{ "hooks": ')
    const settings = readSettings({ dir: project.dir, home: false })
    assert.deepEqual([commandsOf(settings), settings.problems.length], [['local'], 1])
  })

  test('settings cannot change a prototype', () => {
    using project = new HookProject()
    project.write('.claude/settings.json', '{"hooks":{"__proto__":{"enabled":false},"constructor":[]}}')
    const { problems } = readSettings({ dir: project.dir, home: false })
    assert.deepEqual([problems.length, ({} as { enabled?: boolean }).enabled], [2, undefined])
  })
})

describe('plugins', () => {
  const ran = async (plugin: SettingsPlaces['plugins'], dir: string): Promise<void> => {
    const { groups } = readSettings({ dir, home: false, plugins: plugin! })
    await runEvent(new HookTable(groups), examplePayload({}, 'Stop', dir), {
      context: { ...contextIn(dir), env: { ...process.env, CLAUDE_CONFIG_DIR: `${dir}/config` } },
    })
  }

  test('hooks of a plugin get its folder, the options of the user and a data folder', async () => {
    using project = new HookProject()
    const command = 'printf "%s\\n" "$CLAUDE_PLUGIN_ROOT" "$CLAUDE_PLUGIN_OPTION_LEVEL" > "$CLAUDE_PLUGIN_DATA/seen"'
    project.settings({ hooks: hooks(command) }, 'plugin/hooks/hooks.json')
    await ran([{ dir: project.path('plugin'), options: { level: 'high' } }], project.dir)
    const seen = readFileSync(project.path('config/plugins/data/plugin/seen'), 'utf8')
    assert.equal(seen, `${project.path('plugin')}\nhigh\n`)
  })

  test('options of a plugin are replaced in a command without a shell', async () => {
    using project = new HookProject()
    const handler = { type: 'command', command: 'touch', args: ['${CLAUDE_PLUGIN_ROOT}/${user_config.name}'] }
    project.settings({ hooks: { Stop: [{ hooks: [handler] }] } }, 'plugin/hooks/hooks.json')
    await ran([{ dir: project.path('plugin'), options: { name: 'made' } }], project.dir)
    assert.ok(existsSync(project.path('plugin/made')))
  })

  for (const [what, manifest] of [
    ['a path', { hooks: './other.json' }],
    ['a list of paths', { hooks: ['./other.json'] }],
    ['the hooks themselves', { hooks: hooks('other') }],
    ['the hooks under their own key', { hooks: { hooks: hooks('other') } }],
  ] as const) {
    test(`a plugin manifest can have hooks as ${what}`, () => {
      using project = new HookProject()
      project.settings({ hooks: hooks('other') }, 'plugin/other.json')
      project.settings(manifest, 'plugin/.claude-plugin/plugin.json')
      const settings = readSettings({ dir: project.dir, home: false, plugins: [project.path('plugin')] })
      assert.deepEqual(commandsOf(settings), ['other'])
    })
  }

  test('hooks of skills and commands of a plugin get its folder, and those of its agents are ignored', () => {
    using project = new HookProject()
    const head = 'hooks:\n  Stop:\n    - hooks:\n        - { type: command, command: x }\n---\n'
    for (const file of ['skills/a/SKILL.md', 'commands/b.md', 'agents/c.md']) {
      project.write(`plugin/${file}`, `---\ndescription: d\n${head}`)
    }
    const { groups } = readSettings({ dir: project.dir, home: false, plugins: [project.path('plugin')] })
    assert.deepEqual(
      groups.map(({ source: { kind, name, plugin } }) => [kind, name, plugin]),
      [
        ['skill', 'a', project.path('plugin')],
        ['skill', 'b', project.path('plugin')],
      ],
    )
  })
})

describe('front matter of skills and agents', () => {
  const head = (event: string, command: string, more = ''): string =>
    `---\nname: x\ndescription: d\nhooks:\n  ${event}:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ${command}\n${more}---\nbody\n`

  test('front matter can have hooks, and Stop of an agent is SubagentStop', () => {
    using project = new HookProject()
    project.write('.claude/skills/lint/SKILL.md', head('PreToolUse', 'a').replace('name: x', 'name: lint'))
    project.write('.claude/agents/reviewer.md', head('Stop', 'b').replace('name: x', 'name: reviewer'))
    project.write('.claude/agents/plain.md', '---\nname: plain\n---\nno hooks: here\n')
    const { groups, problems } = readSettings({ dir: project.dir, home: false })
    assert.deepEqual(
      [groups.map(({ event, source: { kind, name } }) => [event, kind, name]), problems],
      [
        [
          ['PreToolUse', 'skill', 'lint'],
          ['SubagentStop', 'agent', 'reviewer'],
        ],
        [],
      ],
    )
  })

  test('once applies only to hooks of a skill', async () => {
    using project = new HookProject()
    const once = '          once: true\n'
    project.write('.claude/skills/x/SKILL.md', head('PreToolUse', 'echo s >> skill', once))
    project.handlers('PreToolUse', [{ type: 'command', command: 'echo p >> project', once: true }])
    const table = new HookTable(readSettings({ dir: project.dir, home: false }).groups)
    const onceDone = new Set<string>()
    const payload = examplePayload({ tool_name: 'Bash' }, 'PreToolUse', project.dir)
    for (let i = 0; i < 2; i++) {
      await runEvent(table, payload, { context: contextIn(project.dir), isActive: () => true, onceDone })
    }
    const lines = (file: string): number => readFileSync(project.path(file), 'utf8').trim().split('\n').length
    assert.deepEqual([lines('skill'), lines('project')], [1, 2])
  })
})
