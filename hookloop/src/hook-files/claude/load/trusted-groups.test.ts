import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { agentIn } from '../agent-in-project.fixture.ts'
import { HookProject } from '../hook-project.fixture.ts'
import { TrustStore } from '../../trust/trust-store.ts'
import { filesOf } from './trusted-groups.ts'
import { readSettings } from './read-settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-trusted-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A project with two groups: one runs a script, the other a command. Each leaves a mark. */
class Marked extends HookProject {
  readonly trust = new TrustStore(join(mkdtempSync(join(folder, 'store-')), 'trust.json'))

  constructor() {
    super()
    this.write('hooks/guard', `touch ${this.path('script-ran')}\n`)
    this.group('sh hooks/guard', `touch ${this.path('command-ran')}`)
  }

  group(...commands: readonly string[]): void {
    this.settings({ hooks: { PreToolUse: commands.map((command) => ({ hooks: [{ type: 'command', command }] })) } })
  }

  accept(): void {
    this.trust.trust(filesOf(readSettings({ dir: this.dir, home: false }).groups, this.dir))
  }

  /** Which hooks ran, and what the agent says about the others. */
  async run(options: { readonly home?: string | false; readonly managed?: string; readonly change?: () => void } = {}) {
    const { change, home = false, ...places } = options
    const { agent, ran } = agentIn(this, { options: { trust: this.trust, home, ...places } })
    change?.()
    await agent.run('List.')
    const marks = ['script-ran', 'command-ran'].filter((name) => existsSync(this.path(name)))
    for (const name of marks) rmSync(this.path(name))
    return { marks, ran, notes: agent.describe().notes.join('\n') }
  }
}

describe('Claude Code hooks of a project', { concurrency: 2 }, () => {
  test('run if their file and their scripts are trusted', async () => {
    using project = new Marked()
    project.accept()
    assert.deepEqual((await project.run()).marks, ['script-ran', 'command-ran'])
  })

  test('do not run if their script has changed since it was trusted, and other groups do', async () => {
    using project = new Marked()
    project.accept()
    appendFileSync(project.path('hooks/guard'), '# changed\n')
    const { marks, notes } = await project.run()
    assert.deepEqual(marks, ['command-ran'])
    assert.match(notes, /hooks\/guard has changed since it was trusted/)
  })

  test('of a plugin inside the project include the scripts that it names by CLAUDE_PLUGIN_ROOT', () => {
    using project = new HookProject()
    const command = 'sh "$CLAUDE_PLUGIN_ROOT/check"'
    project.settings({ hooks: { Stop: [{ hooks: [{ type: 'command', command }] }] } }, 'plugin/hooks/hooks.json')
    project.write('plugin/check', 'exit 0\n')
    const { groups } = readSettings({ dir: project.dir, home: false, plugins: [project.path('plugin')] })
    const files = filesOf(groups, project.dir).map(({ path }) => path)
    assert.ok(files.includes(project.path('plugin/check')), files.join())
  })

  test('include the files that env of their file names, such as those of NODE_OPTIONS and BASH_ENV', () => {
    using project = new HookProject()
    const hooks = { Stop: [{ hooks: [{ type: 'command', command: 'node -e 0' }] }] }
    project.settings({ hooks, env: { NODE_OPTIONS: '--require=./a.js', BASH_ENV: 'b.sh', GUARDS: 'sub' } })
    for (const name of ['a.js', 'b.sh']) project.write(name, '')
    const files = filesOf(readSettings({ dir: project.dir, home: false }).groups, project.dir)
    const names = files.map(({ path }) => path.slice(project.dir.length + 1))
    assert.deepEqual(names, ['.claude/settings.json', 'a.js', 'b.sh'])
  })

  test('need trust if they are in the settings of a user whose home folder is inside the project', async () => {
    using project = new Marked()
    rmSync(project.path('.claude'), { recursive: true })
    const command = `touch ${project.path('command-ran')}`
    project.settings(
      { hooks: { PreToolUse: [{ hooks: [{ type: 'command', command }] }] } },
      'home/.claude/settings.json',
    )
    assert.deepEqual((await project.run({ home: project.path('home') })).marks, [])
  })

  test('need no trust if they are in the settings of the user, nor do the scripts of the project that they run', async () => {
    using project = new Marked()
    rmSync(project.path('.claude'), { recursive: true })
    const home = mkdtempSync(join(folder, 'home-'))
    const hooks = { PreToolUse: [{ hooks: [{ type: 'command', command: 'sh hooks/guard' }] }] }
    mkdirSync(join(home, '.claude'))
    writeFileSync(join(home, '.claude/settings.json'), JSON.stringify({ hooks }))
    assert.deepEqual(filesOf(readSettings({ dir: project.dir, home }).groups, project.dir), [])
    assert.deepEqual((await project.run({ home })).marks, ['script-ran'])
  })

  test('need no trust if they are in the settings of the organisation, wherever that file is', async () => {
    using project = new Marked()
    rmSync(project.path('.claude'), { recursive: true })
    const hooks = { PreToolUse: [{ hooks: [{ type: 'command', command: 'sh hooks/guard' }] }] }
    project.settings({ hooks }, 'managed.json')
    const managed = project.path('managed.json')
    assert.deepEqual(filesOf(readSettings({ dir: project.dir, home: false, managed }).groups, project.dir), [])
    assert.deepEqual((await project.run({ managed })).marks, ['script-ran'])
  })
})

test('a copy of a trusted file that was changed is not shown as the trusted content', () => {
  using project = new Marked()
  project.accept()
  const guard = filesOf(readSettings({ dir: project.dir, home: false }).groups, project.dir).find(({ path }) =>
    path.endsWith('guard'),
  )!
  assert.equal(project.trust.trustedText(guard), readFileSync(guard.path, 'utf8'))
  writeFileSync(join(project.trust.file, '..', 'trusted', guard.hash), 'something else')
  assert.equal(project.trust.trustedText(guard), undefined)
})
