import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Use } from '../../../core/agent/capability.ts'
import { approval } from '../../../capabilities/approval.ts'
import { bash } from '../../../capabilities/bash/bash.ts'
import { subagents } from '../../../capabilities/subagents/subagents.ts'
import { summarization } from '../../../capabilities/summarization/summarization.ts'
import { tasks } from '../../../capabilities/tasks/tasks.ts'
import { createAgent } from '../../../create-agent.ts'
import { ENVIRONMENT_KEY } from '../../../core/state/agent-state.ts'
import type { JsonObject } from '../../../values/json.ts'
import { guard } from '../../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../../models/scripted.ts'
import { memoryStore } from '../../../sessions/stores/memory-store.ts'
import { agentIn, askedUntil, call, own, resultIn, said } from '../agent-in-project.fixture.ts'
import { claudeHooks, type ClaudeHooksOptions } from '../claude-hooks.ts'
import { claudeEventNames } from './claude-events.ts'
import { holds, HookProject, prints } from '../hook-project.fixture.ts'
import { strictReplay } from '../../../sessions/replay/strict-replay.fixture.ts'

/** A hook that stores its payload, and answers. */
function log(fields: string, says = 'true'): JsonObject {
  const values = fields.split(' ').map((name) => `e.${name} ?? null`)
  return { type: 'command', command: `${prints(`[${values.join()}]`)} >> seen; ${says}` }
}

function seen(project: HookProject): readonly unknown[] {
  if (!existsSync(project.path('seen'))) return []
  const lines = readFileSync(project.path('seen'), 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as unknown)
}

type World = {
  readonly replies: readonly ScriptedTurn[]
  readonly use?: readonly Use[]
  readonly options?: Partial<ClaudeHooksOptions>
}

function agentWith(project: HookProject, { replies, use = [], options = {} }: World) {
  const model = scriptedModel([...replies])
  const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false, ...options })
  const store = memoryStore()
  return { agent: createAgent({ model, store, use: [...use, hooks] }), model, store }
}

describe('events of a call', { concurrency: 2 }, () => {
  test('SubagentStart: the subagent gets context', async () => {
    using project = new HookProject()
    const says = own('SubagentStart', { additionalContext: 'the moon is full' })
    project.handlers('SubagentStart', [log('hook_event_name agent_type agent_id', says)], 'helper')
    const spawn = (subagent: string): ScriptedTurn => ({
      toolCalls: [{ name: 'spawn_subagent', args: { subagent, prompt: 'Look.' } }],
    })
    const agents = {
      helper: { description: 'Helps.', instructions: 'Help.' },
      other: { description: 'Is another.', instructions: 'Be another.' },
    }
    const { agent, model } = agentWith(project, {
      replies: [spawn('helper'), 'Seen.', spawn('other'), 'Seen too.', 'Done.'],
      use: [subagents({ agents })],
    })
    const run = await agent.run('Go.')
    assert.equal(run.status, 'completed')
    const [, helper, , other] = model.requests.map(({ messages }) => said(messages).at(-1))
    assert.match(helper!, /^user: Look\.\n\n[^]*the moon is full/)
    assert.equal(other, 'user: Look.')
    assert.deepEqual(seen(project), [['SubagentStart', 'helper', run.state.execution!.steps.at(0)!.toolCalls[0]!.id]])
  })

  test('TaskCreated and TaskCompleted: a block leaves the list unchanged', async () => {
    using project = new HookProject()
    const fields = 'hook_event_name task_id task_subject'
    const no = 'grep -q Shout seen* && { echo "No shouting." >&2; exit 2; } || true'
    project.settings({
      hooks: { TaskCreated: [{ hooks: [log(fields, no)] }], TaskCompleted: [{ hooks: [log(fields)] }] },
    })
    const write = (...todos: readonly JsonObject[]): ScriptedTurn => ({
      toolCalls: [{ name: 'todo_write', args: { todos } }],
    })
    const sing = { content: 'Sing', status: 'in_progress', activeForm: 'Singing' }
    const { agent } = agentWith(project, {
      replies: [
        write(sing),
        write({ ...sing, status: 'completed' }),
        write({ ...sing, status: 'completed' }, { ...sing, content: 'Shout' }),
        'Done.',
      ],
      use: [tasks()],
    })
    const run = await agent.run('Go.')
    assert.deepEqual(seen(project), [
      ['TaskCreated', '1', 'Sing'],
      ['TaskCompleted', '1', 'Sing'],
      ['TaskCreated', '2', 'Shout'],
    ])
    assert.match(JSON.stringify(resultIn(run.state.messages)), /No shouting\./)
    assert.doesNotMatch(JSON.stringify(run.state.metadata), /Shout/)
  })

  test('PermissionDenied: fires only if a guard blocked, and can let the model try again', async () => {
    using project = new HookProject()
    project.settings({
      hooks: {
        PreToolUse: [{ hooks: [{ type: 'command', command: 'grep -q mine && exit 2; exit 0' }] }],
        PermissionDenied: [{ hooks: [log('tool_name reason', own('PermissionDenied', { retry: true }))] }],
      },
    })
    const strict = guard('beforeToolUse', (ctx) =>
      JSON.stringify(ctx.toolCall.args).includes('theirs') ? ctx.block('too early') : ctx,
    )
    const { agent, ran } = agentIn(project, { use: [strict], replies: [call('mine'), call('theirs'), 'Done.'] })
    const run = await agent.run('Go.')
    assert.deepEqual(ran, [])
    assert.equal(seen(project).length, 1)
    assert.match(JSON.stringify(seen(project)), /Bash.*too early/)
    assert.match(said(run.state.messages).at(-2)!, /PermissionDenied:Bash hook: .* try it again once/)
  })

  test('Notification: runs in the background while the approver is asked', async () => {
    using project = new HookProject()
    project.settings({
      hooks: { Notification: [{ matcher: 'permission_prompt', hooks: [log('notification_type message session_id')] }] },
    })
    const asks = guard('beforeToolUse', (ctx) => ctx.ask('may it?'))
    const { agent, ran } = agentIn(project, {
      use: [asks],
      options: {
        answer: async () => {
          while (seen(project).length === 0) await sleep(10)
          return 'allow' as const
        },
      },
    })
    await agent.session('s').send('Go.')
    assert.deepEqual(ran, ['ls'])
    assert.deepEqual(seen(project), [['permission_prompt', 'Permission is needed to use Bash', 's']])
  })
})

test('a PermissionRequest hook can end the run', async () => {
  for (const answer of [undefined, () => 'allow' as const]) {
    using project = new HookProject()
    const decision = { behavior: 'deny', message: 'go home', interrupt: true }
    project.settings({
      hooks: {
        PreToolUse: [{ hooks: [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'ask' }) }] }],
        PermissionRequest: [{ hooks: [{ type: 'command', command: own('PermissionRequest', { decision }) }] }],
      },
    })
    const { agent, ran } = agentIn(project, { ...(answer !== undefined && { options: { answer } }) })
    const run = await agent.run('Go.')
    assert.deepEqual([ran, run.status], [[], 'stopped'])
    assert.match(JSON.stringify(run), /go home/)
  }
})

test('approvals of parallel runs with equal call ids are not mixed up', async () => {
  using project = new HookProject()
  const decision = { behavior: 'deny', message: 'go home', interrupt: true }
  const deny = own('PermissionRequest', { decision })
  const first = holds('e.session_id === "first"')
  project.settings({
    hooks: {
      PermissionRequest: [
        { hooks: [{ type: 'command', command: `sleep 0.3; cat > $$; ${first} < $$ && ${deny}; rm $$` }] },
      ],
    },
  })
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('may it?'))
  const options = { answer: () => 'allow' as const }
  const { bare } = agentIn(project, { options, use: [asks] })
  const same = { toolCalls: [{ id: 'same', name: 'bash', args: { command: 'ls' } }] }
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'Done.' : same))
  const agent = createAgent({ ...bare, model, store: memoryStore() })
  const runs = await Promise.all(['first', 'second'].map((id) => agent.session(id).send('Go.')))
  assert.deepEqual(
    runs.map(({ status }) => status),
    ['stopped', 'completed'],
  )
})

describe('display and compaction', { concurrency: 2 }, () => {
  test('MessageDisplay: streaming does not wait for it', async () => {
    using project = new HookProject()
    project.handlers('MessageDisplay', [
      { type: 'command', command: 'until [ -e shown.log ]; do sleep 0.02; done; touch seen.log' },
    ])
    const { agent } = agentIn(project, { replies: ['Done.'] })
    for await (const event of agent.stream('Go.')) if (event.type === 'text') project.write('shown.log', '')
    assert.ok(existsSync(project.path('seen.log')))
  })

  test('PreCompact, SessionStart and PostCompact fire in this order, and know the cause', async () => {
    using project = new HookProject()
    const fields = 'hook_event_name trigger source'
    const adds = own('SessionStart', { additionalContext: 'mind the gap' })
    project.settings({
      hooks: {
        PreCompact: [{ matcher: 'manual', hooks: [log(fields)] }],
        SessionStart: [{ matcher: 'compact', hooks: [log(fields, adds)] }],
        PostCompact: [{ matcher: 'manual', hooks: [log(fields)] }],
      },
    })
    const { agent } = agentWith(project, {
      replies: ['One.', 'Two.', 'Three.'],
      use: [summarization({ summarize: () => 'numbers' })],
    })
    const session = agent.session('s')
    await session.send('First, and this is quite a long text.')
    await session.send('Second, and this one is quite long as well.')
    await session.compact()
    const run = await session.send('Third.')
    assert.deepEqual(seen(project), [
      ['PreCompact', 'manual', null],
      ['SessionStart', null, 'compact'],
      ['PostCompact', 'manual', null],
    ])
    assert.ok(said(run.state.messages).some((each) => each.includes('mind the gap')))
  })
})

describe('SessionStart', { concurrency: 2 }, () => {
  test('SessionStart has a source: new, copied, cleared or resumed', async () => {
    using project = new HookProject()
    project.settings({
      hooks: {
        SessionStart: [{ hooks: [log('hook_event_name session_id source')] }],
        SessionEnd: [{ hooks: [{ ...log('hook_event_name session_id reason'), timeout: 60 }] }],
      },
    })
    const { agent } = agentWith(project, { replies: ['One.', 'Two.', 'Three.'] })
    const session = agent.session('s')
    await session.send('First.')
    await (await session.fork({ as: 'copy' })).send('Second.')
    await session.clear()
    await agent.session('s').send('Third.')
    assert.deepEqual(seen(project), [
      ['SessionStart', 's', 'startup'],
      ['SessionStart', 'copy', 'fork'],
      ['SessionEnd', 's', 'clear'],
      ['SessionStart', 's', 'clear'],
      ['SessionStart', 's', 'resume'],
    ])
  })

  test('SessionStart can set a title and a first message, and later hooks get the title', async () => {
    using project = new HookProject()
    const start = own('SessionStart', { sessionTitle: 'Monday', initialUserMessage: 'Read the news.' })
    project.settings({
      hooks: {
        SessionStart: [{ hooks: [{ type: 'command', command: start }] }],
        UserPromptSubmit: [{ hooks: [log('session_title', own('UserPromptSubmit', { sessionTitle: 'Tuesday' }))] }],
      },
    })
    const { agent, store } = agentWith(project, { replies: ['One.', 'Two.'] })
    const session = agent.session('s')
    const run = await session.send('First.')
    await session.send('Second.')
    assert.deepEqual(seen(project), [['Monday'], ['Tuesday']])
    assert.deepEqual(
      (await store.list()).map(({ head }) => head['title']),
      ['Tuesday'],
    )
    assert.deepEqual(said(run.state.messages), ['user: Read the news.', 'user: First.', 'assistant: One.'])
  })

  test('later commands get the variables that SessionStart exports, and they are not stored', async () => {
    using project = new HookProject()
    const lines = [
      'export COLOUR="deep $NAME"',
      'export PATH="$PATH:/opt/there"',
      'export LD_PRELOAD=evil.so',
      'PLAIN=1',
    ]
    const command = `export NAME=blue; { echo 'NAME=red'; printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')}; } >> "$CLAUDE_ENV_FILE"`
    project.handlers('SessionStart', [{ type: 'command', command }])
    const { agent, store } = agentWith(project, {
      replies: [
        { toolCalls: [{ name: 'bash', args: { command: 'echo "$COLOUR|$PLAIN|$LD_PRELOAD|${PATH##*:}"' } }] },
        'Done.',
      ],
      use: [bash({ cwd: project.dir, sandbox: 'off' }), approval({ answer: () => 'allow' })],
    })
    const run = await agent.session('s').send('Go.')
    assert.match(JSON.stringify(resultIn(run.state.messages)), /deep red\|\|\|\/opt\/there/)
    const { lines: kept } = (await store.read('s'))!
    assert.equal(typeof run.state.metadata[ENVIRONMENT_KEY], 'string')
    assert.doesNotMatch(kept.filter((line) => line.includes(ENVIRONMENT_KEY)).join('\n'), /"COLOUR":/)
  })

  test('the model gets the text of an asyncRewake script with the next event', async () => {
    using project = new HookProject()
    const command = 'until [ -e go ]; do sleep 0.05; done; echo "the build broke" >&2; exit 2'
    project.handlers('PostToolUse', [{ type: 'command', command, asyncRewake: true }])
    const { agent } = agentIn(project, { replies: [call('ls'), ...Array<string>(300).fill('Done.')] })
    const session = agent.session('s')
    const first = await session.send('Go.')
    project.write('go', '')
    const heard = await askedUntil(session, 'the build broke')
    assert.ok(!said(first.state.messages).some((each) => each.includes('the build broke')))
    assert.ok(heard.some((each) => each.includes('the build broke')))
  })
})

test('a replay runs no handler again, and has the same state', async () => {
  using project = new HookProject()
  const says: { readonly [event: string]: string } = {
    PreToolUse: own('PreToolUse', { additionalContext: 'mind the step' }),
    SubagentStart: own('SubagentStart', { additionalContext: 'the moon is full' }),
    PermissionDenied: own('PermissionDenied', { retry: true }),
    UserPromptSubmit: own('UserPromptSubmit', { sessionTitle: 'Monday' }),
  }
  project.settings({
    hooks: Object.fromEntries(
      claudeEventNames.map((event) => [event, [{ hooks: [log('hook_event_name', says[event])] }]]),
    ),
  })
  const strict = guard('beforeToolUse', (ctx) => (ctx.toolCall.name === 'bash' ? ctx.block('too early') : ctx))
  const todo = { content: 'Sing', status: 'completed', activeForm: 'Singing' }
  const replies: readonly ScriptedTurn[] = [
    { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'helper', prompt: 'Look.' } }] },
    'Seen.',
    { toolCalls: [{ name: 'todo_write', args: { todos: [todo] } }] },
    call('ls'),
    'Done.',
  ]
  const store = memoryStore()
  const make = () =>
    createAgent({
      model: scriptedModel([...replies]),
      store,
      use: [
        subagents({ agents: { helper: { description: 'Helps.', instructions: 'Help.' } } }),
        tasks(),
        bash({ cwd: project.dir, sandbox: 'off' }),
        strict,
        claudeHooks({ dir: project.dir, trust: 'all', home: false }),
      ],
    })
  await make().run('Go.', { session: 's' })
  const fired = seen(project).flat()
  for (const event of ['SubagentStart', 'TaskCreated', 'TaskCompleted', 'PermissionDenied', 'MessageDisplay'])
    assert.ok(fired.includes(event), event)
  await strictReplay(make(), store, 's')
  assert.deepEqual(seen(project).flat(), fired)
})
