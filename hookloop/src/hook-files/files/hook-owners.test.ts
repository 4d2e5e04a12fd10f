import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { skills } from '../../capabilities/skills/skills.ts'
import { readAgents, subagents } from '../../capabilities/subagents/index.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel, type ScriptedCall } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { hookFilesOf, projectHooks, type ProjectHooksOptions } from './project-hooks.ts'
import { TrustStore } from '../trust/trust-store.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-owners-')))
after(() => rmSync(root, { recursive: true, force: true }))

/** A project with a skill and an agent, whose hooks write to a file. */
class Project {
  readonly dir = mkdtempSync(join(root, 'project-'))
  readonly marks = join(root, `marks-${this.dir.slice(-6)}`)
  readonly worked: string[] = []

  write(path: string, text: string): string {
    const file = join(this.dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }

  head(fields: string, ...entries: readonly string[]): string {
    const hooks = entries.map((entry) => `    - ${entry}\n`).join('')
    return `---\n${fields}\nhookloop:\n  hooks:\n${hooks}---\nDo it well.\n`
  }

  skill(name: string, ...entries: readonly string[]): string {
    const fields = `name: ${name}\ndescription: Use it when: ${name} is wanted.`
    return this.write(`.hookloop/skills/${name}/SKILL.md`, this.head(fields, ...entries))
  }

  agent(file: string, name: string, ...entries: readonly string[]): string {
    return this.write(`.hookloop/agents/${file}.md`, this.head(`name: ${name}\ndescription: It works.`, ...entries))
  }

  /** An entry that writes to a file, and blocks on request. */
  entry(word: string, how = 'on: beforeToolUse, mode: guard, tool: work', code = 0): string {
    return `{ name: ${word}, ${how}, shell: 'echo ${word} >> ${this.marks}; exit ${code}' }`
  }

  marked(): readonly string[] {
    return existsSync(this.marks) ? readFileSync(this.marks, 'utf8').trimEnd().split('\n') : []
  }

  hooks(options: Partial<ProjectHooksOptions> = {}) {
    return projectHooks({ dir: this.dir, home: false, trust: 'all', ...options })
  }

  /** An agent that makes these calls, step by step, for each input. */
  agentOf(...steps: readonly (readonly ScriptedCall[])[]) {
    const work = tool({
      name: 'work',
      description: 'Works.',
      input: { type: 'object' },
      execute: ({ to }) => void this.worked.push(to as string),
    })
    const inner = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { toolCalls: [call('inside')] },
    )
    const { agents } = readAgents(join(this.dir, '.hookloop/agents'))
    const named = Object.entries(agents).map(([name, each]) => [name, { ...each, model: inner }] as const)
    const turns = steps.map((toolCalls) => (toolCalls.length === 0 ? 'Done.' : { toolCalls }))
    return createAgent({
      model: scriptedModel(turns),
      store: memoryStore(),
      use: [
        work,
        skills({ cwd: this.dir }),
        ...(named.length === 0 ? [] : [subagents({ agents: Object.fromEntries(named) })]),
        this.hooks(),
      ],
    })
  }
}

const call = (to: string): ScriptedCall => ({ name: 'work', args: { to } })
const load = (skill_name: string): ScriptedCall => ({ name: 'load_skill', args: { skill_name } })
const spawn = (subagent: string): ScriptedCall => ({ name: 'spawn_subagent', args: { subagent, prompt: 'Work.' } })

suite('front matter hooks of a skill', () => {
  test('hooks of a skill apply once it is loaded, until the session ends', async () => {
    const project = new Project()
    project.skill('deploy', project.entry('judge', undefined, 2))
    const agent = project.agentOf([call('before')], [load('deploy')], [call('after')], [], [call('later')], [])
    const session = agent.session('s')
    await session.send('go')
    await session.send('and again') // the skill is not active any more, its hooks still apply
    assert.deepEqual([project.worked, project.marked()], [['before'], ['judge', 'judge']])
  })

  test('hooks of a skill apply in the step that loads it, and when the user calls it', async () => {
    const project = new Project()
    project.skill('deploy', project.entry('judge', undefined, 2))
    await project.agentOf([load('deploy'), call('beside')], []).run('go')
    await project.agentOf([call('asked')], []).run('/deploy')
    assert.deepEqual([project.worked, project.marked()], [[], ['judge', 'judge']])
  })
})

suite('front matter hooks of an agent', () => {
  test('hooks of an agent apply while it runs, in every mode, under the name of the agent', async () => {
    const project = new Project()
    project.agent(
      'first',
      'reviewer',
      project.entry('judge'),
      project.entry('changes', 'on: beforeToolUse, mode: hook, tool: work'),
      project.entry('ends', 'on: onSubagentStop, mode: observe'),
    )
    project.write('.hookloop/agents/other.md', '---\ndescription: It works.\n---\nWork.')
    const agent = project.agentOf([call('outside')], [spawn('other')], [spawn('reviewer')], [call('outside')], [])
    await agent.run('go')
    assert.deepEqual(project.worked, ['outside', 'inside', 'inside', 'outside'])
    assert.deepEqual(project.marked(), ['changes', 'judge', 'ends'])
  })
})

suite('front matter hooks', () => {
  test('front matter hooks and their scripts must be trusted', () => {
    const project = new Project()
    const file = project.skill('deploy', `{ name: judge, on: beforeToolUse, mode: guard, shell: ./check.sh }`)
    const script = project.write('.hookloop/skills/deploy/check.sh', 'exit 2')
    const trust = new TrustStore(join(root, `trust-${project.dir.slice(-6)}.json`))
    const before = project.hooks({ trust })
    assert.deepEqual([before.hooks, before.notes!.length], [[], 1])
    assert.deepEqual(
      hookFilesOf(project.dir).map(({ path }) => path),
      [file, script],
    )
    trust.trust(hookFilesOf(project.dir))
    assert.deepEqual(
      project.hooks({ trust }).hooks!.map(({ name }) => name),
      ['judge', 'projectHooks.skills'],
    )
    appendFileSync(file, 'More words.')
    assert.throws(() => project.hooks({ trust }), { code: 'CONFIG_UNTRUSTED' })
  })

  test('front matter hooks cannot allow anything', async () => {
    const project = new Project()
    const allows = `{ on: beforeToolUse, mode: guard, shell: 'echo ''{"decision":"allow"}''' }`
    project.skill('deploy', allows)
    const asking = tool({
      name: 'careful',
      description: 'Asks.',
      input: { type: 'object' },
      ask: true,
      execute: () => 'ran',
    })
    const agent = project.agentOf([load('deploy')], [{ name: 'careful' }], []).with(asking)
    const run = await agent.run('go')
    assert.notEqual(run.state.execution!.steps.at(1)!.toolExecutions[0]!.status, 'ok')
    project.write('.hookloop/skills/deploy/SKILL.md', '---\ndescription: D.\nhookloop:\n  allow: { env: [X] }\n---\n')
    assert.throws(() => project.hooks(), /only the user file can have "allow"/)
  })

  const broken: readonly [what: string, head: string, why: RegExp][] = [
    [
      'an unknown trigger',
      'hookloop:\n  hooks:\n    - on: beforeLunch\n      mode: guard\n      shell: x',
      /SKILL\.md:4: there is no trigger "beforeLunch"/,
    ],
    ['hooks that are not a list', 'hookloop:\n  hooks: x', /SKILL\.md:4: "hooks" must be a list/],
    ['invalid YAML', 'hookloop:\n  hooks: [', /SKILL\.md: the front matter cannot be parsed/],
  ]
  for (const [what, head, why] of broken) {
    test(`front matter with ${what} throws`, () => {
      const project = new Project()
      project.write(
        '.claude/skills/deploy/SKILL.md',
        `---\nname: deploy\ndescription: Use it when: x.\n${head}\n---\nX`,
      )
      assert.throws(() => project.hooks(), why)
    })
  }
})
