import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import type { Use } from '../../core/agent/capability.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../core/hooks/hook.ts'
import { http } from '../../actions/http.ts'
import { shell } from '../../actions/shell.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { agentIn, call, own } from './agent-in-project.fixture.ts'
import { HookProject, quoted } from './hook-project.fixture.ts'

const secret = 'tok-0123456789abcdef'

/** Runs an agent, and returns what the model received, the ledger and the warnings. */
async function runWith(agent: ReturnType<typeof createAgent>) {
  const live = agent.stream('List.')
  const warnings: string[] = []
  for await (const event of live) if (event.type === 'warning') warnings.push(event.message)
  const run = await live.run
  return { run, told: JSON.stringify(run.state.messages), warnings, ledger: run.ledger }
}

describe('a hook that fails', { concurrency: 2 }, () => {
  const failing: readonly [what: string, command: string][] = [
    ['exits with 1', `./check.sh --token ${secret}; exit 1`],
    ['prints its arguments', `echo ${secret} >&2; exit 3`],
    ['does not exist', `/opt/${secret}/missing.sh`],
    ['prints nonsense', `echo '{"decision": "${secret}"}'`],
  ]
  for (const [what, command] of failing) {
    test(`does not show its command or output to the model if it ${what}`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', command, onFailure: 'block' }])
      const { agent, ran } = agentIn(project)
      const { told } = await runWith(agent)
      assert.deepEqual(ran, [])
      assert.match(told, /The hook \\"[\w.]+\\" (?:exited with|gave an invalid answer)/)
      assert.ok(!told.includes(secret), told)
      const guarded = createAgent({
        model: scriptedModel([call('ls'), 'Done.']),
        use: [listing, guard('beforeToolUse', shell({ command }))],
      })
      const native = await runWith(guarded)
      assert.match(native.told, /Guard \\"shell:[\w.]+\\" failed at beforeToolUse/)
      assert.ok(!native.told.includes(secret), native.told)
    })
  }

  const quoting: readonly [what: string, handler: JsonObject, told: RegExp][] = [
    [
      'is a line that a shell cannot parse',
      { command: `./check.sh --token ${secret} ;; done` },
      /`(?:ulimit -m \d+; )?check\.sh'/,
    ],
    ['has one such line', { command: `true\nfi ./check.sh --token ${secret}` }, /near unexpected token/],
    ['names its script by its path', { command: `sh ${secret}/guard.sh` }, /hook error: guard\.sh: Never\./],
    [
      'has arguments, and no name',
      { command: 'sh', args: ['-c', 'exit 3', secret], onFailure: 'block' },
      /The hook \\"exit\\" exited with 3/,
    ],
  ]
  for (const [what, handler, expected] of quoting)
    test(`does not show its command or folder to the model if it ${what}`, async () => {
      using project = new HookProject()
      project.write(`${secret}/guard.sh`, 'echo "$0: Never." >&2; exit 2')
      project.handlers('PreToolUse', [{ type: 'command', shell: 'bash', ...handler }])
      const { told } = await runWith(agentIn(project).agent)
      assert.match(told, expected)
      assert.ok(!told.includes(secret), told)
    })

  test('does not show its URL to the model', async () => {
    const use = [listing, guard('beforeToolUse', http({ url: `http://127.0.0.1:9/${secret}?key=${secret}` }))]
    const { told, ledger } = await runWith(createAgent({ model: scriptedModel([call('ls'), 'Done.']), use }))
    assert.match(told, /Guard \\"http:127\.0\.0\.1:9\\" failed/)
    assert.ok(!told.includes(secret))
    assert.match(ledger.find(({ error }) => error !== undefined)?.error ?? '', /this machine or its network/)
  })

  test('does not show the path of a system error, a second line or a key to the model', async () => {
    const errors = [
      Object.assign(new Error(`ENOENT: open /home/${secret}`), { syscall: 'open', code: 'ENOENT' }),
      new Error(`no\n    at /home/${secret}`),
      new Error('no sk-live-0123456789abcdef01234567'),
    ]
    for (const error of errors) {
      const broken = guard('beforeToolUse', () => {
        throw error
      })
      const { told } = await runWith(
        createAgent({ model: scriptedModel([call('ls'), 'Done.']), use: [listing, broken] }),
      )
      assert.match(told, /failed at beforeToolUse/)
      assert.doesNotMatch(told, /home|0123456789/)
    }
  })
})

const listing = tool({
  name: 'bash',
  description: 'Runs a command.',
  input: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  execute: () => 'listed',
})

describe('the user is warned about', { concurrency: 2 }, () => {
  const ask = { type: 'command', command: own('PreToolUse', { permissionDecision: 'ask' }) }
  const requests: readonly [what: string, handler: JsonObject, why: RegExp][] = [
    ['fails', { command: 'exit 3' }, /exited with 3/],
    ['times out', { command: 'sleep 60', timeout: 0.2 }, /timed out/],
    ['answers nonsense', { command: `echo '{"decision": "maybe"}'` }, /its answer is invalid/],
  ]
  for (const [what, handler, why] of requests) {
    for (const hasApprover of [true, false]) {
      test(`a PermissionRequest hook that ${what}, ${hasApprover ? 'with' : 'without'} an approver`, async () => {
        using project = new HookProject()
        const hooks = [{ type: 'command', ...handler }]
        project.settings({ hooks: { PreToolUse: [{ hooks: [ask] }], PermissionRequest: [{ hooks }] } })
        const options = hasApprover ? { answer: () => 'allow' as const } : {}
        const { agent } = agentIn(project, { options, use: hasApprover ? [] : [approval('block')] })
        assert.match((await runWith(agent)).warnings.join('\n'), why)
      })
    }
  }

  test('the stopReason of a Stop hook', async () => {
    using project = new HookProject()
    const stop = { continue: false, stopReason: 'The budget is spent.' }
    project.handlers('Stop', [{ type: 'command', command: `echo ${quoted(JSON.stringify(stop))}` }])
    assert.match(
      (await runWith(agentIn(project).agent)).warnings.join('\n'),
      /Stop hook ended the run: The budget is spent\./,
    )
  })

  const mistakes: readonly [what: string, handler: JsonObject, why: RegExp][] = [
    [
      'whose decision is at the wrong place',
      { command: `echo '{"permissionDecision":"deny"}'` },
      /"permissionDecision" has no effect at the top level/,
    ],
    [
      'that prints its answer to standard error',
      { command: `echo '{"decision":"block"}' >&2` },
      /its JSON is on standard error/,
    ],
    ['that exits with 1 to block', { command: 'exit 1' }, /its exit code 1 blocks nothing: only 2 does/],
    [
      'that changes only a part of the arguments',
      { command: own('PreToolUse', { updatedInput: { description: 'List.' } }) },
      /A hook changed the arguments of "bash", and they do not fit: .*"command"/,
    ],
  ]
  for (const [what, handler, why] of mistakes)
    test(`a PreToolUse hook ${what}`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', ...handler }])
      const { run } = await runWith(agentIn(project).agent)
      assert.match(run.warnings.map(({ message }) => message).join('\n'), why)
    })

  test('no exit code 1 of a hook that blocks if it fails, or at an event where 2 blocks nothing either', async () => {
    using project = new HookProject()
    const fails = { type: 'command', command: 'exit 1' }
    project.handlers('PreToolUse', [{ ...fails, onFailure: 'block' }])
    const blocked = await runWith(agentIn(project).agent)
    project.settings({ hooks: { PreToolUse: [{ hooks: [ask] }], PermissionRequest: [{ hooks: [fails] }] } })
    const asked = await runWith(agentIn(project).agent)
    assert.match(asked.warnings.join('\n'), /exited with 1/)
    assert.doesNotMatch([...blocked.warnings, ...asked.warnings].join('\n'), /blocks nothing/)
  })
})

describe('the answers of Claude Code hooks', { concurrency: 2 }, () => {
  const deny = {
    type: 'command',
    command: own('PreToolUse', { permissionDecision: 'deny', permissionDecisionReason: 'Never.' }),
  }

  test('that deny leave the arguments as they are, whatever another handler changed', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [
      deny,
      { type: 'command', command: own('PreToolUse', { updatedInput: { command: 'rm' } }) },
    ])
    const { run } = await runWith(agentIn(project).agent)
    assert.deepEqual(run.state.execution!.steps.at(0)!.toolCalls[0]!.args, { command: 'ls' })
  })

  const toolEvents = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'PermissionDenied', 'PermissionRequest']
  /** The events that fire for calls, and how the calls end. */
  async function firedFor(toolCalls: readonly { name: string; args: Json }[], use: readonly Use[] = []) {
    using project = new HookProject()
    const log = { type: 'command', command: 'jq -r .hook_event_name >> fired.log' }
    const hooks = Object.fromEntries(toolEvents.map((event) => [event, [{ hooks: [log] }]]))
    project.settings({ hooks })
    project.write('fired.log', '')
    const { run } = await runWith(agentIn(project, { replies: [{ toolCalls }, 'Done.'], use }).agent)
    const executions = run.state.execution!.steps.at(0)!.toolExecutions
    return {
      fired: project.read('fired.log').split('\n').slice(0, -1),
      ends: [...executions].map(({ status, rejected }) => `${status}${rejected === true ? ', rejected' : ''}`),
    }
  }

  for (const [what, toolCall] of Object.entries({
    'of an unknown tool': { name: 'nothing', args: {} },
    'with arguments that do not fit': { name: 'bash', args: { command: 7 } },
    'with arguments that are no object': { name: 'bash', args: ['ls'] },
    'with arguments that are no JSON': { name: 'bash', args: '{"command": ' },
  }))
    test(`are not requested for a call ${what}`, async () => {
      assert.deepEqual(await firedFor([toolCall]), { fired: [], ends: ['failed, rejected'] })
    })

  test('are not requested for a call that does not run because the run was stopped before', async () => {
    const calls = ['first', 'second', 'third'].map((command) => ({ name: 'bash', args: { command } }))
    const { fired, ends } = await firedFor(calls, [guards({ maxToolCalls: 1 })])
    assert.deepEqual(
      ends,
      calls.map(() => 'blocked, rejected'),
    ) // they run together
    assert.deepEqual(fired, ['PreToolUse', 'PreToolUse'])
  })
})
