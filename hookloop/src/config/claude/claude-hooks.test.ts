import assert from 'node:assert/strict'
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Use } from '../../agent/capability.ts'
import { tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../../data/event.ts'
import type { JsonObject } from '../../data/json.ts'
import { textOf, type Message } from '../../data/message.ts'
import { AgentError } from '../../errors.ts'
import { guard } from '../../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/memory-store.ts'
import { recordEffects } from '../../sessions/record-effects.ts'
import { memoryRecording } from '../../sessions/recording.ts'
import { replayEffects } from '../../sessions/replay-effects.ts'
import { TrustStore } from '../trust.ts'
import { claudeHooks, type ClaudeHooksOptions } from './claude-hooks.ts'
import type { ClaudeEvent } from './events.ts'
import { HookProject, quoted } from './hook-project.fixture.ts'

const own = (event: ClaudeEvent, fields: JsonObject): string =>
  `echo ${quoted(JSON.stringify({ hookSpecificOutput: { hookEventName: event, ...fields } }))}`

type World = {
  readonly options?: Partial<ClaudeHooksOptions>
  readonly use?: readonly Use[]
  readonly replies?: readonly ScriptedTurn[]
}

/** An agent with a shell that only says what it was given, and the hooks of a project. */
function agentIn(project: HookProject, { options = {}, use = [], replies = [call('ls'), 'Done.'] }: World = {}) {
  const ran: string[] = []
  const bash = tool({
    name: 'bash',
    description: 'Runs a command.',
    input: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
    concurrent: true,
    execute: ({ command }) => {
      ran.push(command as string)
      return command === 'fail' ? 'Exit code: 1\noutput\nSTDERR:\nerror' : `ran ${command as string}`
    },
  })
  const model = scriptedModel([...replies])
  const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false, ...options })
  const store = memoryStore()
  return {
    agent: createAgent({ model, store, use: [bash, hooks, ...use] }),
    bare: { model, use: [bash, hooks, ...use] },
    ran,
    model,
  }
}

function call(...commands: readonly string[]): ScriptedTurn {
  return { toolCalls: commands.map((command) => ({ name: 'bash', args: { command } })) }
}

function said(messages: Iterable<Message>): readonly string[] {
  return [...messages].map(({ role, content }) => `${role}: ${textOf(content)}`)
}

/** What the model read as the result of its last call. */
function resultIn(messages: Iterable<Message>): unknown {
  const parts = [...messages].flatMap(({ content }) => content)
  return parts.findLast((part) => part.type === 'tool-result')
}

describe('a call', { concurrency: 2 }, () => {
  test('that a script denies is not run, and the model is told why', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'echo "rm is forbidden" >&2; exit 2' }], 'Bash')
    const { agent, ran } = agentIn(project)
    const run = await agent.run('Go.')
    const result = resultIn(run.state.messages) as { output: string }
    assert.deepEqual([ran, run.status, result.output], [[], 'completed', 'PreToolUse:Bash hook error: rm is forbidden'])
  })

  test('that a script is silent about, or allows, is run', async () => {
    for (const command of ['true', own('PreToolUse', { permissionDecision: 'allow' })]) {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', command }])
      const { agent, ran } = agentIn(project)
      await agent.run('Go.')
      assert.deepEqual(ran, ['ls'])
    }
  })

  test('a yes of a script answers for a tool that asks by default, and not for a guard', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'allow' }) }])
    const asked = agentIn(project, { use: [approval({ answer: 'deny', tools: ['bash'] })] })
    await asked.agent.run('Go.')
    const guarded = agentIn(project, { use: [guard('beforeToolUse', (ctx) => ctx.block('never'), { name: 'never' })] })
    await guarded.agent.run('Go.')
    assert.deepEqual([asked.ran, guarded.ran], [['ls'], []])
  })

  test('that a script asks about is put to a person', async () => {
    using project = new HookProject()
    const ask = own('PreToolUse', { permissionDecision: 'ask', permissionDecisionReason: 'Sure?' })
    project.handlers('PreToolUse', [{ type: 'command', command: ask }])
    const questions: string[] = []
    const answers = (yes: boolean): Use =>
      approval((question) => {
        questions.push(question.message)
        return yes ? 'allow' : { block: 'no' }
      })
    const yes = agentIn(project, { use: [answers(true)] })
    await yes.agent.run('Go.')
    const no = agentIn(project, { use: [answers(false)] })
    await no.agent.run('Go.')
    const nobody = agentIn(project)
    await nobody.agent.run('Go.')
    assert.deepEqual([questions, yes.ran, no.ran, nobody.ran], [['Sure?', 'Sure?'], ['ls'], [], []])
  })

  test('that a script leaves open waits, and is gone on with', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'defer' }) }])
    const { agent, ran } = agentIn(project, { use: [approval('suspend')] })
    const run = await agent.run('Go.')
    assert.deepEqual([run.status, ran], ['suspended', []])
    const [pending] = run.status === 'suspended' ? run.pending : []
    await agent.resume(run, { answers: { [pending!.id]: 'allow' } })
    assert.deepEqual(ran, ['ls'])
  })

  test('cannot be left open when it is not the only one of its turn', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'defer' }) }])
    const { agent, ran } = agentIn(project, { use: [approval('suspend')], replies: [call('a', 'b'), 'Done.'] })
    await agent.run('Go.')
    assert.deepEqual(ran, ['a', 'b'])
  })

  test('runs with the whole input that a script gives it, and guards judge that', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [
      { type: 'command', command: own('PreToolUse', { updatedInput: { command: 'safe', timeout: 5 } }) },
    ])
    const judged: unknown[] = []
    const watch = guard('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.args), ctx), { name: 'watch' })
    const { agent, ran } = agentIn(project, { use: [watch] })
    await agent.run('Go.')
    assert.deepEqual([ran, judged], [['safe'], [{ command: 'safe', timeout_ms: 5 }]])
  })

  test('is told context by a script, between lines that no script can write', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [
      { type: 'command', command: own('PreToolUse', { additionalContext: 'branch: main' }) },
    ])
    const { agent } = agentIn(project)
    const { state } = await agent.run('Go.')
    assert.match(
      said(state.messages).join('\n'),
      /\[(\w+) context from hook "PreToolUse:Bash"\]\nbranch: main\n\[end \1\]/,
    )
  })

  test('continue: false ends the run, and the call is not run', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: `echo '{"continue":false,"stopReason":"enough"}'` }])
    const { agent, ran } = agentIn(project)
    const run = await agent.run('Go.')
    assert.deepEqual(
      [run.status, run.status === 'stopped' && [run.reason, run.final.message], ran],
      ['stopped', ['stopRequested', 'enough'], []],
    )
  })

  test('an error that stops nothing is a warning', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'echo broken >&2; exit 1' }])
    const { agent, ran } = agentIn(project)
    const live = agent.stream('Go.')
    const warnings: string[] = []
    for await (const event of live) if (event.type === 'warning') warnings.push(event.message)
    assert.match(warnings.join('\n'), /^PreToolUse hook: .* exited with 1: broken$/)
    assert.deepEqual(ran, ['ls'])
  })
})

describe('after a call', { concurrency: 2 }, () => {
  test('exit 2 is feedback for the model, which also reads the output', async () => {
    using project = new HookProject()
    project.handlers('PostToolUse', [{ type: 'command', command: 'echo "lint failed" >&2; exit 2' }])
    const { agent } = agentIn(project)
    const { state } = await agent.run('Go.')
    assert.equal((resultIn(state.messages) as { output: string }).output, 'ran ls')
    assert.ok(said(state.messages).includes('user: PostToolUse:Bash hook feedback:\nlint failed'))
  })

  test('a script sees what the tool gave in the shape it knows, and puts another output in its place', async () => {
    using project = new HookProject()
    const script = project.write(
      'redact.py',
      [
        'import json, sys',
        'event = json.load(sys.stdin)',
        'response = dict(event["tool_response"], stdout=event["tool_response"]["stdout"].replace("ls", "***"))',
        'print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": response}}))',
      ].join('\n'),
    )
    project.handlers('PostToolUse', [{ type: 'command', command: `python3 ${script}` }])
    const { agent } = agentIn(project)
    const { state } = await agent.run('Go.')
    assert.equal((resultIn(state.messages) as { output: string }).output, 'ran ***')
  })

  test('a command that failed is a failure there, and never both', async () => {
    using project = new HookProject()
    const log = { type: 'command', command: 'jq -r ".hook_event_name, .error" >> events.log' }
    project.settings({ hooks: { PostToolUse: [{ hooks: [log] }], PostToolUseFailure: [{ hooks: [log] }] } })
    const { agent } = agentIn(project, { replies: [call('fail'), 'Done.'] })
    await agent.run('Go.')
    assert.equal(
      readFileSync(project.path('events.log'), 'utf8'),
      'PostToolUseFailure\nExit code 1\noutput\nSTDERR:\nerror\n',
    )
  })

  test('a batch that is blocked ends the run before the next model call', async () => {
    using project = new HookProject()
    project.handlers('PostToolBatch', [{ type: 'command', command: 'echo halt >&2; exit 2' }])
    const { agent, model } = agentIn(project, { replies: [call('a', 'b'), 'Done.'] })
    const run = await agent.run('Go.')
    assert.deepEqual([run.status, model.requests.length], ['stopped', 1])
  })
})

describe('a prompt', { concurrency: 2 }, () => {
  test('that a script blocks is erased, and the user is told why', async () => {
    using project = new HookProject()
    const command = `jq -e '.prompt | test("secret")' >/dev/null && { echo "no secrets" >&2; exit 2; }; exit 0`
    project.handlers('UserPromptSubmit', [{ type: 'command', command }])
    const { agent, model } = agentIn(project, { replies: ['Hi.'] })
    const run = await agent.run('my secret')
    assert.deepEqual(
      [run.status, run.status === 'stopped' && run.final.message, model.requests.length],
      ['stopped', 'no secrets', 0],
    )
    assert.equal(run.state.messages.length, 0)
  })

  test('is told what a script prints', async () => {
    using project = new HookProject()
    project.handlers('UserPromptSubmit', [{ type: 'command', command: 'echo "Time: noon"' }])
    const { agent } = agentIn(project, { replies: ['Hi.'] })
    const { state } = await agent.run('Hello.')
    assert.match(said(state.messages)[0]!, /Time: noon/)
  })
})

describe('the end of a turn', { concurrency: 2 }, () => {
  const untilActive = `jq -e .stop_hook_active >/dev/null && exit 0; echo "run the tests" >&2; exit 2`

  test('is put off by a script, which knows that it has done so', async () => {
    using project = new HookProject()
    project.handlers('Stop', [{ type: 'command', command: untilActive }])
    const { agent, model } = agentIn(project, { replies: ['Done.', 'Tested.'] })
    const run = await agent.run('Go.')
    assert.deepEqual([run.status, run.text, model.requests.length], ['completed', 'Tested.', 2])
    assert.ok(said(run.state.messages).includes('user: Stop hook feedback:\nrun the tests'))
  })

  test('is put off by context as well', async () => {
    using project = new HookProject()
    const command = `jq -e .stop_hook_active >/dev/null && exit 0; ${own('Stop', { additionalContext: 'look again' })}`
    project.handlers('Stop', [{ type: 'command', command }])
    const { agent, model } = agentIn(project, { replies: ['Done.', 'Looked.'] })
    await agent.run('Go.')
    assert.equal(model.requests.length, 2)
  })

  test('cannot be put off more than eight times in a row', async () => {
    using project = new HookProject()
    project.handlers('Stop', [{ type: 'command', command: 'echo more >&2; exit 2' }])
    const { agent, model } = agentIn(project, { replies: Array.from({ length: 20 }, () => 'Done.') })
    const run = await agent.run('Go.')
    assert.deepEqual(
      [run.status, run.status === 'stopped' && run.reason, model.requests.length],
      ['stopped', 'continuationLimit', 9],
    )
  })

  test('is not heard of when a model failed: that is a failure of its own', async () => {
    using project = new HookProject()
    const log = { type: 'command', command: 'jq -r ".hook_event_name, .error" >> events.log' }
    project.settings({ hooks: { Stop: [{ hooks: [log] }], StopFailure: [{ hooks: [log] }] } })
    const model = scriptedModel([{ error: new AgentError('MODEL_RATE_LIMITED', 'slow down') }])
    const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false })
    await createAgent({ model, use: [hooks] }).run('Go.')
    assert.match(readFileSync(project.path('events.log'), 'utf8'), /^StopFailure\n/)
  })
})

describe('a session', { concurrency: 2 }, () => {
  test('begins with what scripts print, has one id in every event, and ends', async () => {
    using project = new HookProject()
    const log = {
      type: 'command',
      command: 'jq -r "[.hook_event_name, .session_id, .source, .reason] | @tsv" >> log; echo hello',
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

  test('is a file that scripts can read, in the shape they know', async () => {
    using project = new HookProject()
    const script = project.write(
      'last.mjs',
      [
        "import { readFileSync } from 'node:fs'",
        "const { transcript_path: path } = JSON.parse(readFileSync(0, 'utf8'))",
        "const lines = readFileSync(path, 'utf8').trim().split('\\n').map((line) => JSON.parse(line))",
        "const kinds = lines.map(({ type, message }) => [type, typeof message.content === 'string' ? message.content : message.content.map((b) => b.type + ':' + (b.name ?? b.text ?? b.content)).join()])",
        'console.error(JSON.stringify(kinds)); process.exit(1)',
      ].join('\n'),
    )
    project.handlers('Stop', [{ type: 'command', command: `${quoted(process.execPath)} ${script}` }])
    const { agent } = agentIn(project)
    const events: AgentEvent[] = []
    for await (const event of agent.stream('Go.')) events.push(event)
    const [warning] = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []))
    assert.match(
      warning!,
      /\[\["user","Go\."\],\["assistant","tool_use:Bash"\],\["user","tool_result:ran ls"\],\["assistant","text:Done\."\]\]$/,
    )
  })

  test('what a script says that nobody waited for is told at the next prompt', async () => {
    using project = new HookProject()
    const command = `sleep 0.2; ${own('PostToolUse', { additionalContext: 'the build is green' })}; touch over`
    project.handlers('PostToolUse', [{ type: 'command', command, async: true }])
    const { agent } = agentIn(project, { replies: [call('ls'), 'Done.', 'Again.'] })
    const session = agent.session('s')
    const first = await session.send('Go.')
    while (!existsSync(project.path('over'))) await sleep(20)
    await sleep(200)
    const second = await session.send('And?')
    assert.doesNotMatch(said(first.state.messages).join(), /green/)
    assert.match(said(second.state.messages).join(), /the build is green/)
  })

  test('what runs beside it ends with it', async () => {
    using project = new HookProject()
    project.handlers('PostToolUse', [{ type: 'command', command: 'echo $$ > pid; sleep 60; touch late', async: true }])
    const { agent } = agentIn(project)
    const session = agent.session('s')
    await session.send('Go.')
    while (!existsSync(project.path('pid'))) await sleep(20)
    await session.end()
    const pid = Number(readFileSync(project.path('pid'), 'utf8'))
    const isThere = (): boolean => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    }
    for (let i = 0; i < 100 && isThere(); i++) await sleep(50)
    assert.ok(!isThere())
  })
})

describe('hooks of a project in code', { concurrency: 2 }, () => {
  test('a replay runs no script again', async () => {
    using project = new HookProject()
    const count = { type: 'command', command: 'echo x >> count' }
    project.settings({
      hooks: { PreToolUse: [{ hooks: [count] }], PostToolUse: [{ hooks: [count] }], Stop: [{ hooks: [count] }] },
    })
    const { bare } = agentIn(project)
    const agent = createAgent(bare)
    const recording = memoryRecording()
    await agent.run('Go.', { effects: recordEffects(recording) })
    const before = readFileSync(project.path('count'), 'utf8')
    const again = await agent.run('Go.', { effects: replayEffects(recording) })
    assert.deepEqual([before.length, readFileSync(project.path('count'), 'utf8')], [6, before])
    assert.equal(again.status, 'completed')
  })

  test('streams and calls that run together are judged each', async () => {
    using project = new HookProject()
    const command = `jq -e '.tool_input.command == "b"' >/dev/null && { echo no b >&2; exit 2; }; exit 0`
    project.handlers('PreToolUse', [{ type: 'command', command }])
    const { agent, ran } = agentIn(project, { replies: [call('a', 'b', 'c'), 'Done.'] })
    for await (const _event of agent.stream('Go.'));
    assert.deepEqual(ran.toSorted(), ['a', 'c'])
  })

  test('nothing of a project runs that nobody has trusted, and the agent says so', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'touch mark' }])
    const trust = new TrustStore(project.path('trust.json'))
    const { agent } = agentIn(project, { options: { trust } })
    await agent.run('Go.')
    assert.ok(!existsSync(project.path('mark')))
    assert.match(agent.describe().notes.join('\n'), /is not trusted: its hooks do not run/)
  })

  for (const [what, change] of [
    ['another text', (path: string) => writeFileSync(path, '#!/bin/sh\nexit 0\n')],
    ['gone', (path: string) => rmSync(path)],
  ] as const) {
    test(`a script that is ${what} since the agent was put together is not run, and the call is denied`, async () => {
      using project = new HookProject()
      const script = project.write('.claude/hooks/check.sh', '#!/bin/sh\nexit 0\n# first\n', 0o755)
      project.handlers('PreToolUse', [{ type: 'command', command: '"$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh' }])
      const { agent, ran } = agentIn(project, { replies: [call('a'), 'Done.', call('b'), 'Done.'] })
      await agent.run('Go.')
      change(script)
      const { state } = await agent.run('Again.')
      assert.deepEqual(ran, ['a'])
      assert.match((resultIn(state.messages) as { output: string }).output, /check\.sh is not what it was/)
    })
  }

  test('a file that a hook writes to may change', async () => {
    using project = new HookProject()
    const script = project.write('.claude/hooks/log.sh', '#!/bin/sh\necho x >> "$1"\n', 0o755)
    project.write('.claude/hooks.log', '')
    project.handlers('PreToolUse', [{ type: 'command', command: `${script} .claude/hooks.log` }])
    const { agent, ran } = agentIn(project, { replies: [call('a'), call('b'), 'Done.'] })
    await agent.run('Go.')
    assert.deepEqual(ran, ['a', 'b'])
  })

  test('events that never fire here, and what cannot be read, are in the notes', () => {
    using project = new HookProject()
    project.settings({
      hooks: { FileChanged: [{ hooks: [{ type: 'command', command: 'true' }] }], PreToolUs: [] },
    })
    const notes = claudeHooks({ dir: project.dir, trust: 'all', home: false }).notes!.join('\n')
    assert.match(notes, /PreToolUs: there is no such event.*\n.*FileChanged of .* never fires here\./)
  })

  test('a project without hooks adds none', () => {
    using project = new HookProject()
    assert.deepEqual(claudeHooks({ dir: project.dir, trust: 'all', home: false }).hooks, [])
  })

  test('a misspelt option is refused by its name', () => {
    assert.throws(() => claudeHooks({ dir: '.', homes: false } as never), /homes/)
  })
})

describe('a question', { concurrency: 2 }, () => {
  const request = (decision: JsonObject): JsonObject => ({
    type: 'command',
    command: `cat > asked.json; ${own('PermissionRequest', { decision })}`,
  })
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'careful' })

  test('of a guard is put to PermissionRequest hooks before a person', async () => {
    using project = new HookProject()
    project.handlers('PermissionRequest', [request({ behavior: 'allow', updatedInput: { command: 'pwd' } })], 'Bash')
    const { agent, ran } = agentIn(project, { options: { answer: 'deny' }, use: [asks] })
    await agent.run('Go.')
    const { tool_use_id, ...asked } = JSON.parse(readFileSync(project.path('asked.json'), 'utf8')) as JsonObject
    assert.deepEqual(
      [ran, tool_use_id, asked['tool_name'], asked['tool_input']],
      [['pwd'], undefined, 'Bash', { command: 'ls' }],
    )
    assert.ok(typeof asked['session_id'] === 'string' && asked['session_id'] !== '')
  })

  test('that they answer with no is not put to a person', async () => {
    using project = new HookProject()
    project.handlers('PermissionRequest', [request({ behavior: 'deny', message: 'policy' })])
    const people: string[] = []
    const answer = (): 'allow' => (people.push('asked'), 'allow')
    const { agent, ran } = agentIn(project, { options: { answer }, use: [asks] })
    const { state } = await agent.run('Go.')
    assert.deepEqual([ran, people, (resultIn(state.messages) as { output: string }).output], [[], [], 'policy'])
  })

  test('that they do not answer is put to a person', async () => {
    using project = new HookProject()
    project.handlers('PermissionRequest', [{ type: 'command', command: 'exit 2' }])
    const { agent, ran } = agentIn(project, { options: { answer: () => 'allow' }, use: [asks] })
    await agent.run('Go.')
    assert.deepEqual(ran, ['ls'])
  })

  test('of hooks themselves is put to them also without a way to reach people', async () => {
    using project = new HookProject()
    project.settings({
      hooks: {
        PreToolUse: [{ hooks: [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'ask' }) }] }],
        PermissionRequest: [{ hooks: [request({ behavior: 'allow' })] }],
      },
    })
    const { agent, ran } = agentIn(project)
    await agent.run('Go.')
    assert.deepEqual(ran, ['ls'])
  })
})

describe('a model that hooks ask', () => {
  const judging = (project: HookProject): void =>
    void project.handlers('PreToolUse', [
      { type: 'command', command: 'echo x >> count' },
      { type: 'prompt', prompt: 'Is this safe? $ARGUMENTS', continueOnBlock: true },
    ])
  const verdict = (ok: boolean): ScriptedTurn => JSON.stringify({ ok, reason: 'it deletes' })

  test('is that of the conversation, and what it costs is counted', async () => {
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

  test('is not asked again in a replay, and nothing beside it is run again', async () => {
    using project = new HookProject()
    judging(project)
    const { bare, model } = agentIn(project, { replies: [call('rm'), verdict(false), 'Done.'] })
    const agent = createAgent(bare)
    const recording = memoryRecording()
    const run = await agent.run('Go.', { effects: recordEffects(recording) })
    const again = await agent.run('Go.', { effects: replayEffects(recording) })
    assert.deepEqual(
      [again.status, model.requests.length, readFileSync(project.path('count'), 'utf8')],
      ['completed', 3, 'x\n'],
    )
    assert.deepEqual(again.state.toJSON(), run.state.toJSON())
  })
})

test('hooks of a skill are in force from when it is loaded', async () => {
  using project = new HookProject()
  project.write(
    '.claude/skills/careful/SKILL.md',
    '---\nname: careful\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: exit 2\n---\nBe careful.\n',
  )
  const load = tool({
    name: 'load_skill',
    description: 'Loads.',
    input: { type: 'object', properties: { skill_name: { type: 'string' } } },
    execute: () => 'Be careful.',
  })
  const loading: ScriptedTurn = { toolCalls: [{ name: 'load_skill', args: { skill_name: 'careful' } }] }
  const { agent, ran } = agentIn(project, { use: [load], replies: [call('a'), loading, call('b'), 'Done.'] })
  await agent.run('Go.')
  assert.deepEqual(ran, ['a'])
})

test('a script that lost its right to be run lets the call pass, with a warning', async () => {
  using project = new HookProject()
  const script = project.write('check.sh', '#!/bin/sh\nexit 2\n', 0o755)
  project.handlers('PreToolUse', [{ type: 'command', command: script }])
  const { agent, ran } = agentIn(project)
  chmodSync(script, 0o644)
  await agent.run('Go.')
  assert.deepEqual(ran, ['ls'])
})
