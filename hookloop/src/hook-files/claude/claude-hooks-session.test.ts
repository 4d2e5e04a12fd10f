import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { skills } from '../../capabilities/skills/skills.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { JsonObject } from '../../values/json.ts'
import { guard } from '../../core/hooks/hook.ts'
import { type ScriptedTurn } from '../../models/scripted.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'
import { claudeHooks } from './claude-hooks.ts'
import { HookProject, prints, quoted } from './hook-project.fixture.ts'

import { agentIn, call, own, resultIn, said } from './agent-in-project.fixture.ts'

describe('a session', { concurrency: 2 }, () => {
  test('a session starts with the output of scripts, has one id in all events, and ends', async () => {
    using project = new HookProject()
    const log = {
      type: 'command',
      command: `${prints('[e.hook_event_name, e.session_id, e.source, e.reason].join("\\t")')} >> log; echo hello`,
      timeout: 60,
    }
    const names = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'Stop', 'SessionEnd']
    project.settings({ hooks: Object.fromEntries(names.map((name) => [name, [{ hooks: [log] }]])) })
    const { agent } = agentIn(project)
    const session = agent.session('one')
    const run = await session.send('Go.')
    await session.end('logout')
    const lines = readFileSync(project.path('log'), 'utf8').trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => line.split('\t')),
      [
        ['SessionStart', 'one', 'startup', ''],
        ['UserPromptSubmit', 'one', '', ''],
        ['PreToolUse', 'one', '', ''],
        ['Stop', 'one', '', ''],
        ['SessionEnd', 'one', '', 'logout'],
      ],
    )
    assert.match(said(run.state.messages)[0]!, /hello/)
  })

  test('session.end returns a warning for each SessionEnd hook that times out, fails or answers nonsense', async () => {
    using project = new HookProject()
    project.handlers('SessionEnd', [
      { type: 'command', command: 'sleep 20', timeout: 0.2 },
      { type: 'command', command: 'echo broken >&2; exit 1', timeout: 60 },
      { type: 'command', command: `echo '{"continue": "what"}'`, timeout: 60 },
      { type: 'command', command: 'true', timeout: 60 },
    ])
    const { agent } = agentIn(project, { replies: ['Done.', 'Again.'] })
    const session = agent.session('one')
    const first = await session.send('Go.')
    assert.deepEqual(first.warnings, [])
    const warnings = await session.end()
    const texts = warnings.map(({ code, trigger, message }) => `${code} ${trigger} ${message}`)
    assert.equal(texts.length, 3, texts.join('\n'))
    assert.match(texts[0]!, /^ACTION_WARNING onSessionEnd SessionEnd hook: .* timed out/)
    assert.match(texts[1]!, /^ACTION_WARNING onSessionEnd SessionEnd hook: .*broken/s)
    assert.match(texts[2]!, /^ACTION_WARNING onSessionEnd SessionEnd hook: .*continue/)
    await session.clear()
    const again = await session.send('Go on.')
    assert.deepEqual(
      again.warnings.map(({ message }) => message),
      warnings.map(({ message }) => message),
    )
  })

  test('scripts can read the transcript of a session in the format of Claude Code', async () => {
    using project = new HookProject()
    const script = project.write(
      'last.mjs',
      [
        "import { readFileSync } from 'node:fs'",
        "const { transcript_path: path } = JSON.parse(readFileSync(0, 'utf8'))",
        "const lines = readFileSync(path, 'utf8').trim().split('\\n').map((line) => JSON.parse(line))",
        "const kinds = lines.map(({ type, message }) => [type, typeof message.content === 'string' ? message.content : message.content.map((b) => b.type + ':' + (b.name ?? b.text ?? b.content)).join()])",
        'console.error(JSON.stringify(kinds)); process.exit(3)',
      ].join('\n'),
    )
    const read = { type: 'command', command: `${quoted(process.execPath)} ${script}` }
    project.settings({ hooks: { PreToolUse: [{ hooks: [read] }], Stop: [{ hooks: [read] }] } })
    const { agent } = agentIn(project)
    const events: AgentEvent[] = []
    for await (const event of agent.stream('Go.')) events.push(event)
    const [before, after] = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
    assert.match(before!, /\[\["user","Go\."\],\["assistant","tool_use:Bash"\]\]$/)
    assert.match(
      after!,
      /\[\["user","Go\."\],\["assistant","tool_use:Bash"\],\["user","tool_result:ran ls"\],\["assistant","text:Done\."\]\]$/,
    )
  })
})

describe('claudeHooks in a run', { concurrency: 2 }, () => {
  test('a replay does not run scripts again', async () => {
    using project = new HookProject()
    const count = { type: 'command', command: 'echo x >> count' }
    project.settings({
      hooks: { PreToolUse: [{ hooks: [count] }], PostToolUse: [{ hooks: [count] }], Stop: [{ hooks: [count] }] },
    })
    const { agent, store } = agentIn(project)
    await agent.run('Go.', { session: 's' })
    const before = readFileSync(project.path('count'), 'utf8')
    await strictReplay(agent, store, 's')
    assert.deepEqual([before.length, readFileSync(project.path('count'), 'utf8')], [6, before])
  })

  for (const [what, change] of [
    ['another text', (path: string) => writeFileSync(path, '#!/bin/sh\nexit 0\n')],
    ['gone', (path: string) => rmSync(path)],
    ['beside a new file that its command names', (path: string) => writeFileSync(path.replace('check', 'late'), '')],
  ] as const) {
    test(`a script that is ${what} after the agent was created is not run, and the call is denied`, async () => {
      using project = new HookProject()
      const script = project.write('.claude/hooks/check.sh', '#!/bin/sh\nexit 0\n# first\n', 0o755)
      project.handlers('PreToolUse', [
        { type: 'command', command: '"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh .claude/hooks/late.sh' },
      ])
      const { agent, ran } = agentIn(project, { replies: [call('a'), 'Done.', call('b'), 'Done.'] })
      await agent.run('Go.')
      change(script)
      const { state } = await agent.run('Again.')
      assert.deepEqual(ran, ['a'])
      assert.match(
        (resultIn(state.messages) as { output: string }).output,
        /The hook "check\.sh" was not run, because its files have changed since they were trusted/,
      )
    })
  }
})

describe('an approval', { concurrency: 2 }, () => {
  const request = (decision: JsonObject): JsonObject => ({
    type: 'command',
    command: `cat > asked.json; ${own('PermissionRequest', { decision })}`,
  })
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'careful' })

  test('PermissionRequest hooks decide about a call before the approver', async () => {
    using project = new HookProject()
    project.handlers('PermissionRequest', [request({ behavior: 'allow', updatedInput: { command: 'pwd' } })], 'Bash')
    const { agent, ran } = agentIn(project, { options: { answer: 'block' }, use: [asks] })
    await agent.run('Go.')
    const { tool_use_id, ...asked } = JSON.parse(readFileSync(project.path('asked.json'), 'utf8')) as JsonObject
    assert.deepEqual(
      [ran, tool_use_id, asked['tool_name'], asked['tool_input']],
      [['pwd'], undefined, 'Bash', { command: 'ls' }],
    )
    assert.ok(typeof asked['session_id'] === 'string' && asked['session_id'] !== '')
  })

  test('the approver is not asked if PermissionRequest hooks deny', async () => {
    using project = new HookProject()
    project.handlers('PermissionRequest', [request({ behavior: 'deny', message: 'policy' })])
    const people: string[] = []
    const answer = (): 'allow' => (people.push('asked'), 'allow')
    const { agent, ran } = agentIn(project, { options: { answer }, use: [asks] })
    const { state } = await agent.run('Go.')
    assert.deepEqual([ran, people, (resultIn(state.messages) as { output: string }).output], [[], [], 'policy'])
  })

  test('PermissionRequest hooks without the option "answer" are a note, because they do not run for all questions', () => {
    using project = new HookProject()
    project.handlers('PermissionRequest', [request({ behavior: 'deny' })])
    const notesOf = (options: object): string =>
      claudeHooks({ dir: project.dir, trust: 'all', home: false, ...options }).notes?.join('\n') ?? ''
    assert.match(notesOf({}), /PermissionRequest hooks run for questions of other Claude Code hooks only/)
    assert.doesNotMatch(notesOf({ answer: 'suspend' }), /PermissionRequest/)
  })

  for (const [what, command] of [
    ['exit code 2', 'exit 2'],
    ['"decision"', `echo '{"decision":"block","reason":"no"}'`],
    ['"permissionDecision"', `echo '{"permissionDecision":"deny"}'`],
    ['"continue"', `echo '{"continue":false}'`],
  ] as const) {
    test(`a PermissionRequest hook whose ${what} has no effect causes a warning that says how to answer`, async () => {
      using project = new HookProject()
      project.handlers('PermissionRequest', [{ type: 'command', command }])
      const { agent } = agentIn(project, { options: { answer: () => 'allow' }, use: [asks] })
      const { warnings } = await agent.run('Go.')
      const [message = ''] = warnings.map((each) => each.message)
      assert.equal(warnings.length, 1)
      assert.ok(message.includes(what) && message.includes('"behavior": "allow" or "deny"'), message)
    })
  }
})

describe('prompt handlers in a run', () => {
  const judging = (project: HookProject): void =>
    void project.handlers('PreToolUse', [
      { type: 'command', command: 'echo x >> count' },
      { type: 'prompt', prompt: 'Is this safe? $ARGUMENTS', continueOnBlock: true },
    ])
  const verdict = (ok: boolean): ScriptedTurn => JSON.stringify({ ok, reason: 'it deletes' })

  test('prompt handlers call the model of the agent, and the cost counts', async () => {
    using project = new HookProject()
    judging(project)
    const replies = [call('rm'), verdict(false), call('ls'), verdict(true), 'Done.']
    const { agent, ran, model } = agentIn(project, { replies })
    const run = await agent.run('Go.')
    assert.deepEqual([ran, model.requests.length, run.state.usage.inputTokens], [['ls'], 5, 50])
    const [denied] = [...run.state.messages].flatMap(({ content }) =>
      content.filter((part) => part.type === 'tool-result'),
    )
    assert.equal(denied!.output, 'PreToolUse:Bash hook error: it deletes')
  })
})

test('hooks of a skill apply once it is loaded', async () => {
  using project = new HookProject()
  const hooks = 'hooks:\n  PreToolUse:\n    - hooks:\n        - { type: command, command: exit 2 }'
  project.write('.claude/skills/careful/SKILL.md', `---\nname: careful\ndescription: d\n${hooks}\n---\nBe careful.`)
  const loading: ScriptedTurn = { toolCalls: [{ name: 'load_skill', args: { skill_name: 'careful' } }] }
  const use = [skills({ cwd: project.dir })]
  const { agent, ran } = agentIn(project, { use, replies: [call('a'), loading, call('b'), 'Done.'] })
  await agent.run('Go.')
  assert.deepEqual(ran, ['a'])
})
