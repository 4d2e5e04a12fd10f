import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { textOf } from '../../core/state/message.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { agentWith, projectWith, shellAndFiles, skillFile } from './skills.fixture.ts'
import { getActiveSkills } from './skills.ts'

const load = (skill_name: string, given?: string): ScriptedTurn => ({
  toolCalls: [{ name: 'load_skill', args: { skill_name, ...(given !== undefined && { arguments: given }) } }],
})
const read = (skill_name: string, path: string): ScriptedTurn => ({
  toolCalls: [{ name: 'read_skill_resource', args: { skill_name, path } }],
})
const use = (name: string, args = {}): ScriptedTurn => ({ toolCalls: [{ name, args }] })

const review = skillFile({ name: 'review', description: 'Reviews code.' }, 'Look at $ARGUMENTS twice.')

function outputs(run: { state: { execution?: unknown } }): readonly unknown[] {
  const { steps } = run.state.execution as { steps: Iterable<{ toolExecutions: readonly { output: unknown }[] }> }
  return [...steps].flatMap(({ toolExecutions }) => toolExecutions.map(({ output }) => output))
}

test('the model sees names and descriptions, and reads a skill when it loads it', async () => {
  const cwd = projectWith({ '.claude/skills/review/SKILL.md': review })
  const model = scriptedModel([load('review', 'the diff'), 'Done.'])
  const run = await agentWith(model, { cwd }).run('Review it.')
  const described = model.requests[0]!.tools.find(({ name }) => name === 'load_skill')!.description
  assert.match(described, /\n- review: Reviews code\.$/)
  assert.doesNotMatch(JSON.stringify(model.requests[0]), /twice/)
  assert.match(
    outputs(run)[0] as string,
    /^# Skill: review\n\nLook at the diff twice\.\n\nFolder of the skill: \.claude/,
  )
})

test('the text of a skill reaches the model as the result of a tool, never as a system message', async () => {
  const cwd = projectWith({ '.hookloop/skills/review/SKILL.md': review })
  const run = await agentWith(scriptedModel([load('review'), 'Done.']), { cwd }).run('Go.')
  const roles = run.state.messages.slice().filter(({ content }) => JSON.stringify(content).includes('twice'))
  assert.deepEqual([roles.map(({ role }) => role), run.state.systemPrompt], [['tool'], ''])
})

test('arguments are inserted once: placeholders in them are not replaced', async () => {
  const declared = {
    name: 'echo',
    description: 'Echoes.',
    body: 'First $0, then $ARGUMENTS[1], all: $ARGUMENTS. $9 stays.',
  }
  const run = await agentWith(scriptedModel([load('echo', '$1 "$ARGUMENTS x"'), 'ok']), {
    dirs: [],
    skills: [declared],
  }).run('Go.')
  assert.equal(outputs(run)[0], '# Skill: echo\n\nFirst $1, then $ARGUMENTS x, all: $1 "$ARGUMENTS x". $9 stays.')
})

test('an unknown skill is a failed call that lists the available ones', async () => {
  const cwd = projectWith({ '.claude/skills/review/SKILL.md': review })
  for (const name of ['../review', 'constructor', '']) {
    const run = await agentWith(scriptedModel([load(name), 'ok']), { cwd }).run('Go.')
    assert.match(outputs(run)[0] as string, /^There is no skill .*Use one of: review\.$/)
  }
})

test('while a skill is active only the tools it allows run', async () => {
  const { ran, tools } = shellAndFiles()
  const file = skillFile({ description: 'Reads.', 'allowed-tools': 'Read Bash(git diff:*)' })
  const cwd = projectWith({ '.claude/skills/reader/SKILL.md': file })
  const script = [
    use('write_file'),
    load('reader'),
    use('write_file'),
    use('read_file'),
    use('bash', { command: 'git diff --stat' }),
    use('bash', { command: 'git diff; rm -rf x' }),
    use('bash', { command: 'git difftool' }),
    'Done.',
  ]
  const run = await agentWith(scriptedModel(script), { cwd }, ...tools).run('Go.')
  assert.deepEqual(ran, ['write_file {}', 'read_file {}', 'bash {"command":"git diff --stat"}'])
  assert.match(JSON.stringify(run.ledger), /"hook":"skills.allowedTools".*"decision":"block"/)
})

test('a second skill does not allow what the first one disallows', async () => {
  const { ran, tools } = shellAndFiles()
  const cwd = projectWith({
    '.claude/skills/narrow/SKILL.md': skillFile({ description: 'Narrow.', 'allowed-tools': 'read_file' }),
    '.claude/skills/wide/SKILL.md': skillFile({ description: 'Wide.', 'allowed-tools': '*' }),
    '.claude/skills/silent/SKILL.md': skillFile({ description: 'Says nothing of tools.' }),
  })
  const script = [load('narrow'), load('wide'), load('silent'), use('bash'), use('read_file'), 'Done.']
  await agentWith(scriptedModel(script), { cwd }, ...tools).run('Go.')
  assert.deepEqual(ran, ['read_file {}'])
})

test('a skill is active until its execution ends, also across a suspension', async () => {
  const { ran, tools } = shellAndFiles()
  const cwd = projectWith({ '.claude/skills/mute/SKILL.md': skillFile({ description: 'Mute.', 'allowed-tools': '' }) })
  const agent = agentWith(scriptedModel([load('mute'), use('bash'), 'One.', use('bash'), 'Two.']), { cwd }, ...tools)
  const live = agent.iterate('Go.')
  for await (const state of live) if (state.stepCount === 1) break
  const first = await agent.resume(JSON.parse(JSON.stringify(await live.run)) as never)
  assert.deepEqual([first.text, getActiveSkills(first.state), ran], ['One.', ['mute'], []])
  const second = await agent.run('Again.', { from: first })
  assert.deepEqual([second.text, getActiveSkills(second.state), ran], ['Two.', [], ['bash {}']])
})

test('invalid metadata of active skills blocks every tool', async () => {
  const { ran, tools } = shellAndFiles()
  const agent = agentWith(scriptedModel([use('bash'), 'Done.']), { dirs: [] }, ...tools)
  await agent.run('Go.', { metadata: { 'hookloop.skills': { execution: 1, active: ['?'], depth: 0 } } })
  assert.deepEqual(ran, [])
})

test('a skill gets the model it requests if the application allows it', async () => {
  const small = scriptedModel(['From the small one.'], { modelId: 'small' })
  const fields = { description: 'Quick.', model: 'haiku' }
  const cwd = projectWith({ '.claude/skills/quick/SKILL.md': skillFile(fields) })
  const run = await agentWith(scriptedModel([load('quick')]), { cwd, models: { haiku: small } }).run('Go.')
  assert.deepEqual([run.text, small.requests.length], ['From the small one.', 1])
})

test('a skill that only the user may invoke is neither listed for the model nor loaded by it', async () => {
  const { ran, tools } = shellAndFiles()
  const fields = { description: 'Deploys.', 'disable-model-invocation': true, 'allowed-tools': 'bash' }
  const cwd = projectWith({ '.claude/skills/deploy/SKILL.md': skillFile(fields, 'Deploy $0 to $1.') })
  const model = scriptedModel([load('deploy'), 'No.', use('read_file'), use('bash'), 'Deployed.'])
  const agent = agentWith(model, { cwd }, ...tools)
  const rejected = await agent.run('Deploy.')
  assert.match(outputs(rejected)[0] as string, /Only the user can invoke/)
  assert.doesNotMatch(JSON.stringify(model.requests[0]!.tools), /Deploys/)
  const run = await agent.run('/deploy web production', { from: rejected })
  const input = run.state.messages.slice().findLast(({ role }) => role === 'user')!
  assert.match(textOf(input.content), /Deploy web to production\./)
  assert.deepEqual([ran, getActiveSkills(run.state)], [['bash {}'], ['deploy']])
})

test('resources are listed with the skill and read on demand', async () => {
  const cwd = projectWith({
    '.claude/skills/pdf/SKILL.md': skillFile({ description: 'PDF.' }),
    '.claude/skills/pdf/references/forms.md': 'All about forms.',
    '.claude/skills/pdf/scripts/deep/fill.py': 'print(1)',
    '.claude/skills/pdf/notes.md': 'Notes.',
    '.claude/skills/pdf/.env': 'SECRET',
  })
  const script = [load('pdf'), read('pdf', 'references/forms.md'), read('pdf', '.env'), 'Done.']
  const run = await agentWith(scriptedModel(script), { cwd }).run('Go.')
  const [loaded, forms, secret] = outputs(run)
  assert.match(loaded as string, /\n- notes\.md\n- references\/forms\.md\n- scripts\/deep\/fill\.py$/)
  assert.deepEqual([forms, /SECRET/.test(String(secret))], ['All about forms.', false])
})

test('a subagent is restricted by the skills of its parent, and the skills it loads end with it', async () => {
  const { ran, tools } = shellAndFiles()
  const helper = {}
  const spawn = agentTool({
    name: 'spawn',
    description: 'Starts a helper.',
    input: { type: 'object' },
    to: () => ({ name: 'helper', to: helper, input: 'Help.' }),
  })
  const cwd = projectWith({
    '.claude/skills/narrow/SKILL.md': skillFile({ description: 'x', 'allowed-tools': 'spawn read_file bash' }),
    '.claude/skills/reader/SKILL.md': skillFile({ description: 'x', 'allowed-tools': 'read_file' }),
  })
  const child = [use('write_file'), use('bash'), load('reader'), use('bash'), use('read_file'), 'Helped.']
  const script = [
    'Hello.',
    load('narrow'),
    use('spawn'),
    ...child,
    use('bash'),
    'One.',
    use('spawn'),
    use('write_file'),
    'Helped.',
    'Two.',
  ]
  const agent = agentWith(scriptedModel(script), { cwd }, spawn, ...tools)
  const hello = await agent.run('Hello?')
  const first = await agent.run('Go.', { from: hello })
  assert.deepEqual([first.text, ran], ['One.', ['bash {}', 'read_file {}', 'bash {}']])
  const second = await agent.run('Go on.', { from: first })
  assert.deepEqual([second.text, ran.at(-1)], ['Two.', 'write_file {}'])
})
