import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { JsonObject } from '../../values/json.ts'
import { projectHooks } from '../files/project-hooks.ts'
import { claudeCommands } from './claude-commands.ts'
import { claudeHooks } from './claude-hooks.ts'
import { HookProject } from './hook-project.fixture.ts'

const handler = { type: 'command', command: 'exit 2' }

suite('options of claudeHooks that would silently remove a guard are errors', () => {
  const cases: readonly (readonly [title: string, options: object, message: RegExp])[] = [
    ['a missing project', { dir: '/nope' }, /"dir": there is no \/nope/],
    ['a missing file of an organisation', { managed: '/nope/m.json' }, /"managed": there is no \/nope\/m\.json/],
    ['a folder as file of an organisation', { managed: '/tmp' }, /"managed": \/tmp is not a file/],
    ['a missing plugin', { plugins: ['/nope'] }, /"plugins": there is no \/nope/],
    ['an unknown key of a plugin', { plugins: [{ dir: '/tmp', option: {} }] }, /unknown option "option"/],
    ['an unknown key of settings', { settings: { hook: {} } }, /hook: it is not a setting; did you mean "hooks"\?/],
    ['an event outside of hooks', { settings: { PreToolUse: [] } }, /PreToolUse: an event must be inside "hooks"/],
    [
      'an unknown key of a group',
      { settings: { hooks: { PreToolUse: [{ matchr: 'Bash', hooks: [handler] }] } } },
      /PreToolUse\[0\]\.matchr: it is not a field of a group; did you mean "matcher"\?/,
    ],
    [
      'an unknown key of a handler',
      { settings: { hooks: { PreToolUse: [{ hooks: [{ ...handler, retries: 1 }] }] } } },
      /PreToolUse\[0\]\.hooks\[0\]\.retries: it is not a field of a handler; known: /,
    ],
    ['an invalid handler', { settings: { hooks: { Stop: [{ hooks: [{}] }] } } }, /it must be an object with a "type"/],
  ]
  for (const [title, options, message] of cases) {
    test(title, () => {
      using project = new HookProject()
      const given = { dir: project.dir, home: false, trust: 'all', ...options }
      assert.throws(() => claudeHooks(given as never), { code: 'AGENT_INVALID_OPTION', message })
    })
  }
})

test('folders that projectHooks and claudeCommands are given must exist', () => {
  assert.throws(() => claudeCommands({ dir: '/nope' }), { message: /"dir": there is no \/nope/ })
  assert.throws(() => projectHooks({ dir: '/nope' }), { message: /"dir": there is no \/nope/ })
  for (const option of ['plugins', 'skills', 'agents']) {
    const message = `projectHooks: "${option}": there is no /nope.`
    assert.throws(() => projectHooks({ dir: '/tmp', home: false, [option]: ['/nope'] }), { message })
  }
})

/** What a project with these settings warns about and notes. */
function told(settings: JsonObject) {
  using project = new HookProject()
  project.settings(settings)
  const { warnings = [], notes = [] } = claudeHooks({ dir: project.dir, home: false, trust: 'all' })
  const short = (each: string): string => each.replace(`${project.dir}/.claude/`, '')
  return { warnings: warnings.map(short), notes: notes.map(short) }
}

suite('in a settings file', () => {
  test('a field with a typo is a warning that names the right one', () => {
    const group = { matchr: 'Bash', hooks: [{ ...handler, onFailre: 'block' }] }
    assert.deepEqual(told({ hook: {}, hooks: { PreToolUse: [group] } }).warnings, [
      'settings.json hook: it is not a setting; did you mean "hooks"? It is left out.',
      'settings.json PreToolUse[0].matchr: it is not a field of a group; did you mean "matcher"? It is left out.',
      'settings.json PreToolUse[0].hooks[0].onFailre: it is not a field of a handler; did you mean "onFailure"? It is left out.',
    ])
  })

  test('permissions that are not applied are a note', () => {
    const { warnings, notes } = told({ permissions: { allow: ['Read'], deny: ['Bash(rm *)'], ask: [] } })
    assert.deepEqual(warnings, [])
    assert.deepEqual(notes, [
      'settings.json permissions: the rules in "deny" are not applied here; use bash({ deny, ask }), files({ hide, protect }) or a guard.',
    ])
    assert.deepEqual(told({ permissions: { allow: ['Read'] } }).notes, [])
  })
})
