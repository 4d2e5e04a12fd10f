import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

function everything(): ProjectWithHooks {
  const project = new ProjectWithHooks()
  const hooks = { PreToolUse: [{ matcher: 'work', hooks: [{ type: 'command', command: 'true' }] }] }
  const head = '---\nname: n\nhooks:\n  PreToolUse:\n    - hooks:\n        - { type: command, command: "true" }\n---\n'
  project.write('plugin/.claude-plugin/plugin.json', { name: 'p' })
  project.write('plugin/hooks/hooks.json', { hooks })
  project.write('repo/.claude/settings.json', { hooks })
  project.write('repo/.claude/skills/careful/SKILL.md', head)
  project.write('repo/.claude/agents/reviewer.md', head)
  project.write('anywhere/team.json', { hooks })
  project.write('market/.claude-plugin/marketplace.json', { plugins: [] })
  return project
}

type Reported = { readonly hooks: readonly { readonly source: string; readonly trust: string }[] | number }

describe('--dir of hooks list and hooks import', { concurrency: 2 }, () => {
  for (const [what, path, file, importedTo] of [
    ['a plugin', 'plugin', 'plugin/hooks/hooks.json', 'plugin'],
    ['the file of hooks of a plugin', 'plugin/hooks/hooks.json', 'plugin/hooks/hooks.json', 'plugin'],
    ['the .claude of a project', 'repo/.claude', 'repo/.claude/settings.json', 'repo'],
    ['a settings file', 'repo/.claude/settings.json', 'repo/.claude/settings.json', 'repo'],
    ['settings of any name', 'anywhere/team.json', 'anywhere/team.json', 'anywhere'],
    ['a skill', 'repo/.claude/skills/careful/SKILL.md', 'repo/.claude/skills/careful/SKILL.md', undefined],
    ['an agent', 'repo/.claude/agents/reviewer.md', 'repo/.claude/agents/reviewer.md', undefined],
  ] as const) {
    test(`${what} is listed and imported`, async () => {
      const project = everything()
      const dir = join(project.dir, path)
      const listed = await project.hookloop(['hooks', 'list', '--dir', dir, '--no-user', '--json'])
      const { hooks } = JSON.parse(listed.stdout) as Reported
      const sources = (hooks as { source: string; trust: string }[]).map((each) => [each.source, each.trust])
      const wanted = [join(project.dir, file), 'untrusted']
      assert.deepEqual([listed.code, sources.some((each) => String(each) === String(wanted))], [0, true])
      if (what !== 'the .claude of a project') assert.equal(sources.length, 1)
      const imported = await project.hookloop(['hooks', 'import', '--dir', dir, '--json'])
      const written = importedTo && join(project.dir, importedTo, '.hookloop', 'hooks.json')
      assert.deepEqual(
        [imported.code, (JSON.parse(imported.stdout) as Reported).hooks, written === undefined || existsSync(written)],
        [0, importedTo === undefined ? 0 : 1, true],
      )
    })
  }
})

describe('hookloop hooks import', { concurrency: 2 }, () => {
  test('writes a hook file that decides the same, and reports what is gained', async () => {
    const project = new ProjectWithHooks()
    const block = { type: 'command', command: 'cat > /dev/null; echo "No work." >&2; exit 2' }
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
    const checked = await project.hookloop(['hooks', 'list', '--check'])
    assert.match(
      checked.stderr,
      /PreToolUse cat .* runs twice: it is in .claude\/settings.json and in .hookloop\/hooks.json:4/,
    )
    rmSync(join(project.dir, '.claude'), { recursive: true })
    await project.trust('--yes')
    const ended = await project.run('work x')
    assert.deepEqual([ended.code, project.marked()], [0, []])
    assert.match(ended.stdout, /No work/)
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
    const file = project.hooks({ name: 'judge', on: 'beforeToolUse', mode: 'guard', shell: 'exit 2' })
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

describe('imported hooks', { concurrency: 2 }, () => {
  test('of a plugin find its folder, and their scripts need trust', async () => {
    const project = new ProjectWithHooks()
    const command = 'bash "${CLAUDE_PLUGIN_ROOT}/check.sh"'
    project.write('tools/p/.claude-plugin/plugin.json', { name: 'p' })
    project.write('tools/p/hooks/hooks.json', { hooks: { PreToolUse: [{ hooks: [{ type: 'command', command }] }] } })
    project.write('tools/p/check.sh', 'cat > /dev/null; echo "No from $CLAUDE_PLUGIN_ROOT." >&2; exit 2\n')
    const file = join(project.dir, '.hookloop', 'hooks.json')
    const imported = await project.hookloop(['hooks', 'import', '--dir', 'tools/p', '-o', file])
    assert.match(imported.stdout, /Different:\n {2}PreToolUse check\.sh: it runs in the folder of its file/)
    const trusted = await project.trust('--yes', '--json')
    const { files } = JSON.parse(trusted.stdout) as { files: { path: string }[] }
    assert.deepEqual(
      files.map(({ path }) => path.slice(project.dir.length + 1)),
      ['.hookloop/hooks.json', 'tools/p/check.sh'],
    )
    const ended = await project.run('work x')
    assert.deepEqual([ended.code, project.marked()], [0, []])
    assert.ok(ended.stdout.includes(`No from ${join(project.dir, 'tools', 'p')}.`), ended.stdout)
  })

  for (const type of ['prompt', 'agent']) {
    test(`from a handler of the type ${type} call the model of the agent, which can block`, async () => {
      const project = new ProjectWithHooks()
      writeFileSync(project.agent, askedAgent)
      const handler = { type, prompt: 'Is $ARGUMENTS safe?' }
      project.write('.claude/settings.json', { hooks: { PreToolUse: [{ matcher: 'work', hooks: [handler] }] } })
      const { stdout } = await project.hookloop(['hooks', 'import'])
      assert.match(stdout, /^Wrote 1 hook to .*1 of 1 now fails closed.*Different:/s)
      rmSync(join(project.dir, '.claude'), { recursive: true })
      assert.match(readFileSync(join(project.dir, '.hookloop', 'hooks.json'), 'utf8'), /Is the event below safe\?/)
      await project.trust('--yes')
      const no = await project.run('production')
      const yes = await project.run('staging')
      assert.deepEqual([no.code, yes.code, project.marked()], [0, 0, ['worked staging']], no.stderr)
      assert.match(no.stdout, /Never to production\./)
    })
  }
})

/** Its model blocks what names production, and calls `work` with the input. */
const askedAgent = `import { appendFileSync } from 'node:fs'
import { tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const input = { type: 'object', properties: { to: { type: 'string' } } }
const execute = ({ to }) => { appendFileSync(process.env.MARKS, 'worked ' + to + '\\n'); return 'done' }
const work = tool({ name: 'work', description: 'Works.', input, execute })
const model = scriptedModel(({ messages, tools }) => {
  const last = messages.at(-1)
  const said = last.content.map(({ text, output }) => text ?? output).join(' ')
  const ok = !said.includes('"production"')
  const verdict = { ok, reason: ok ? 'Fine.' : 'Never to production.' }
  if (tools.some(({ name }) => name === 'final_answer')) return { toolCalls: [{ name: 'final_answer', args: verdict }] }
  if (said.includes('End with nothing but a JSON object')) return JSON.stringify(verdict)
  return last.role === 'tool' ? 'It says: ' + said : { toolCalls: [{ name: 'work', args: { to: said } }] }
})
export default { model, use: [work] }
`
