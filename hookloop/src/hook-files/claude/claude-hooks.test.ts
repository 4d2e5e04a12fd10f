import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { claudeHooks } from './claude-hooks.ts'
import { holds, HookProject, prints } from './hook-project.fixture.ts'

import { agentIn, call, own, resultIn, said } from './agent-in-project.fixture.ts'

describe('a call', { concurrency: 2 }, () => {
  test('a call that a script denies is not run, and the model gets the reason', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'echo "rm is forbidden" >&2; exit 2' }], 'Bash')
    const { agent, ran } = agentIn(project)
    const run = await agent.run('Go.')
    const result = resultIn(run.state.messages) as { output: string }
    assert.deepEqual([ran, run.status, result.output], [[], 'completed', 'PreToolUse:Bash hook error: rm is forbidden'])
  })

  test('allow of a script replaces the approval of a tool, but not that of a guard', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'allow' }) }])
    const asked = agentIn(project, { use: [approval({ answer: 'block', tools: ['bash'] })] })
    await asked.agent.run('Go.')
    const guarded = agentIn(project, { use: [guard('beforeToolUse', (ctx) => ctx.block('never'), { name: 'never' })] })
    await guarded.agent.run('Go.')
    assert.deepEqual([asked.ran, guarded.ran], [['ls'], []])
  })

  test('a call that a script asks about needs approval', async () => {
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
    const unanswered = agentIn(project)
    await unanswered.agent.run('Go.')
    assert.deepEqual([questions, yes.ran, no.ran, unanswered.ran], [['Sure?', 'Sure?'], ['ls'], [], []])
  })

  test('a call that a script defers is suspended and can be resumed', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'defer' }) }])
    const { agent, ran } = agentIn(project, { use: [approval('suspend')] })
    const run = await agent.run('Go.')
    assert.deepEqual([run.status, ran], ['suspended', []])
    const [pending] = run.status === 'suspended' ? run.pending : []
    await agent.resume(run, { answers: { [pending!.id]: 'allow' } })
    assert.deepEqual(ran, ['ls'])
  })

  test('a call is not deferred if it is not the only one of its turn', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: own('PreToolUse', { permissionDecision: 'defer' }) }])
    const { agent, ran } = agentIn(project, { use: [approval('suspend')], replies: [call('a', 'b'), 'Done.'] })
    await agent.run('Go.')
    assert.deepEqual(ran, ['a', 'b'])
  })

  test('a call runs with the complete input of a script, and guards judge that input', async () => {
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

  test('the model gets context of a script between markers that no script can write', async () => {
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
})

describe('after a call', { concurrency: 2 }, () => {
  test('exit 2 after a call is feedback for the model, in addition to the output', async () => {
    using project = new HookProject()
    project.handlers('PostToolUse', [{ type: 'command', command: 'echo "lint failed" >&2; exit 2' }])
    const { agent } = agentIn(project)
    const { state } = await agent.run('Go.')
    assert.equal((resultIn(state.messages) as { output: string }).output, 'ran ls')
    assert.ok(said(state.messages).includes('user: PostToolUse:Bash hook feedback:\nlint failed'))
  })

  test('a script gets the output of a tool in the shape of Claude Code, and can replace it', async () => {
    using project = new HookProject()
    const updatedToolOutput = '{ ...e.tool_response, stdout: e.tool_response.stdout.replace("ls", "***") }'
    const answer = `{ hookSpecificOutput: { hookEventName: "PostToolUse", updatedToolOutput: ${updatedToolOutput} } }`
    project.handlers('PostToolUse', [{ type: 'command', command: prints(answer) }])
    const { agent } = agentIn(project)
    const { state } = await agent.run('Go.')
    assert.equal((resultIn(state.messages) as { output: string }).output, 'ran ***')
  })

  test('a failed command fires PostToolUseFailure and not PostToolUse', async () => {
    using project = new HookProject()
    const log = {
      type: 'command',
      command: `${prints('[e.hook_event_name, e.error ?? null].join("\\n")')} >> events.log`,
    }
    project.settings({ hooks: { PostToolUse: [{ hooks: [log] }], PostToolUseFailure: [{ hooks: [log] }] } })
    const { agent } = agentIn(project, { replies: [call('fail'), 'Done.'] })
    await agent.run('Go.')
    assert.equal(
      readFileSync(project.path('events.log'), 'utf8'),
      'PostToolUseFailure\nExit code 1\noutput\nSTDERR:\nerror\n',
    )
  })

  test('a denied call fires neither PostToolUse nor PostToolUseFailure, and is part of its batch', async () => {
    using project = new HookProject()
    const log = { type: 'command', command: `${prints('e.hook_event_name')} >> events.log` }
    const names = ['PostToolUse', 'PostToolUseFailure', 'PostToolBatch']
    project.settings({
      hooks: {
        PreToolUse: [{ hooks: [{ type: 'command', command: 'exit 2' }] }],
        ...Object.fromEntries(names.map((name) => [name, [{ hooks: [log] }]])),
      },
    })
    await agentIn(project).agent.run('Go.')
    assert.equal(readFileSync(project.path('events.log'), 'utf8'), 'PostToolBatch\n')
  })
})

describe('a prompt', { concurrency: 2 }, () => {
  test('a prompt that a script blocks is dropped, and the user gets the reason', async () => {
    using project = new HookProject()
    const command = `${holds('e.prompt.includes("secret")')} && { echo "no secrets" >&2; exit 2; }; exit 0`
    project.handlers('UserPromptSubmit', [{ type: 'command', command }])
    const { agent, model } = agentIn(project, { replies: ['Hi.'] })
    const run = await agent.run('my secret')
    assert.deepEqual(
      [run.status, run.status === 'stopped' && run.final.message, model.requests.length],
      ['stopped', 'no secrets', 0],
    )
    assert.equal(run.state.messages.length, 0)
  })
})

describe('the end of a turn', { concurrency: 2 }, () => {
  const untilActive = `${holds('e.stop_hook_active')} && exit 0; echo "run the tests" >&2; exit 2`

  test('a script can prevent the end of a turn, and knows that it has done so', async () => {
    using project = new HookProject()
    project.handlers('Stop', [{ type: 'command', command: untilActive }])
    const { agent, model } = agentIn(project, { replies: ['Done.', 'Tested.'] })
    const run = await agent.run('Go.')
    assert.deepEqual([run.status, run.text, model.requests.length], ['completed', 'Tested.', 2])
    assert.ok(said(run.state.messages).includes('user: Stop hook feedback:\nrun the tests'))
  })

  test('a model error fires StopFailure and not Stop', async () => {
    using project = new HookProject()
    const log = {
      type: 'command',
      command: `${prints('[e.hook_event_name, e.error ?? null].join("\\n")')} >> events.log`,
    }
    project.settings({ hooks: { Stop: [{ hooks: [log] }], StopFailure: [{ hooks: [log] }] } })
    const model = scriptedModel([{ error: new AgentError('MODEL_RATE_LIMITED', 'slow down') }])
    const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false })
    await createAgent({ model, use: [hooks] }).run('Go.')
    assert.equal(readFileSync(project.path('events.log'), 'utf8'), 'StopFailure\nrate_limit\n')
  })
})
