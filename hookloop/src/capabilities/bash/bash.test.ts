import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import { hook } from '../../core/hooks/hook.ts'
import { anHour, countWith, until } from '../../system/processes/processes.fixture.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { approval } from '../approval.ts'
import { bash, type BashOptions } from './bash.ts'
import { createWorkspace, runCommands } from './workspace.fixture.ts'

const workspace = createWorkspace()
after(workspace.remove)
const { work } = workspace
const yes = approval(() => 'allow')

/** The result of one approved command, as the model gets it. */
async function outputOf(command: string, options: BashOptions = {}): Promise<string> {
  const [execution] = await runCommands([command], { options: { cwd: work, sandbox: 'off', ...options }, use: [yes] })
  return `${execution!.status}: ${execution!.output}`
}

describe('the model gets', () => {
  test('stdout, and stderr after it', async () => {
    assert.equal(await outputOf('echo out; echo err >&2'), 'ok: out\nSTDERR:\nerr')
    assert.equal(await outputOf('true'), 'ok: (no output)')
  })

  test('an exit code other than 0, and a signal', async () => {
    assert.equal(await outputOf('echo no; exit 3'), 'ok: Exit code: 3\nno')
    assert.equal(await outputOf('kill -KILL $$'), 'ok: Ended by signal: SIGKILL\n(no output)')
  })

  test('a timeout, and the output so far', async () => {
    const message = 'The command did not end within 3000 ms. It was ended with all its processes.'
    assert.equal(
      await outputOf('echo started; sleep 60', { timeoutMs: 3_000 }),
      `failed: ${message}\nOutput so far:\nstarted`,
    )
  })

  test('a note that background processes were ended', async () => {
    const message = 'Its background processes were ended with it.'
    assert.equal(await outputOf('sleep 60 & echo hi'), `ok: ${message}\nhi`)
  })

  test('the reason why a command did not start', async () => {
    const gone = mkdtempSync(join(tmpdir(), 'hookloop-gone-'))
    const removes = hook('beforeToolUse', (ctx) => {
      rmSync(gone, { recursive: true })
      return ctx
    })
    const [execution] = await runCommands(['true'], { options: { cwd: gone, sandbox: 'off' }, use: [removes] })
    assert.match(execution!.output, /^The command was not started\. The working directory .* does not exist/)
    assert.match(
      await outputOf(`: ${'x'.repeat(200_000)}`),
      /^(failed: The command was not started\. The command is too long|blocked: )/,
    )
  })

  test('the start and the end of long output, and how much is missing', async () => {
    const text = await outputOf('seq 1 200000; seq 1 99999 >&2', { headChars: 300, tailChars: 900 })
    assert.match(
      text,
      /^ok: 1\n2\n3\n[^]*\n\[… \d{7} bytes left out …\]\n[^]*\n200000\nSTDERR:\n1\n2\n[^]*\n\[… \d{6} bytes left out …\]\n[^]*\n99999$/,
    )
    assert.ok(text.length < 1_400, String(text.length))
  })

  test('no colours, no titles and no control characters', async () => {
    const text = await outputOf(`printf '\\033[31mred\\033[0m\\033]0;title\\007 \\000\\b a\\r\\nb\\rc'`)
    assert.equal(text, 'ok: red \u2400\u2408 a\nb\nc')
  })
})

describe('each call', () => {
  test('is a new shell without state of earlier calls', async () => {
    const commands = ['export A=1; cd /; f() { echo f; }', 'echo "[$A]"; pwd; f']
    const [, second] = await runCommands(commands, { options: { cwd: work, sandbox: 'off' }, use: [yes] })
    assert.match(second!.output, new RegExp(`^Exit code: 127\n\\[\\]\n${work}\nSTDERR:\n.*f: command not found`))
  })

  test('gets the declared variables, and a PATH in which the working directory is last', async () => {
    const text = await outputOf('echo "$CI $NONE"; type -P ls', {
      env: { CI: 'yes', NONE: undefined, PATH: undefined },
    })
    assert.match(text, /^ok: yes \n\/\S*bin\/ls$/)
  })

  test('has a timeout that the model can set, up to a limit', async () => {
    const options = { cwd: work, sandbox: 'off', maxTimeoutMs: 200_000 } as const
    const run = async (timeout_ms: number) => {
      const model = scriptedModel([
        { toolCalls: [{ name: 'bash', args: { command: 'sleep 60', timeout_ms } }] },
        'Done.',
      ])
      const { state } = await createAgent({ model, use: [bash(options), yes] }).run('Go.')
      return JSON.stringify([...state.execution!.steps][0]!.toolExecutions[0]!.output)
    }
    assert.match(await run(100), /did not end within 100 ms/)
    assert.match(await run(200_001), /timeout_ms/)
  })

  test('streams its output while it runs, with a limited number of events', async () => {
    const after = (file: string): string => `until [ -e ${file} ]; do sleep 0.02; done; rm ${file}`
    const command = `echo first; ${after('seen-first')}; echo last >&2; ${after('seen-last')}; yes | head -c 3000000`
    const model = scriptedModel([{ toolCalls: [{ name: 'bash', args: { command } }] }, 'Done.'])
    const agent = createAgent({ model, use: [bash({ cwd: work, sandbox: 'off' }), yes] })
    const updates: Extract<AgentEvent, { type: 'toolProgress' }>['update'][] = []
    for await (const event of agent.stream('Go.'))
      if (event.type === 'toolProgress' && updates.push(event.update) <= 2)
        workspace.write(updates.length === 1 ? 'seen-first' : 'seen-last', '')
    assert.deepEqual(updates.slice(0, 2), [
      { stream: 'stdout', text: 'first\n' },
      { stream: 'stderr', text: 'last\n' },
    ])
    assert.ok(JSON.stringify(updates).length < 500_000)
  })
})

test('P14 our environment does not reach a command, nor a second one', async () => {
  const secrets = { AGENT_API_KEY: 'CANARY-KEY', AWS_SECRET_ACCESS_KEY: 'CANARY-AWS', DATABASE_URL: 'CANARY-DB' }
  Object.assign(process.env, secrets, { 'BASH_FUNC_evil%%': '() { echo CANARY-F; }' })
  const commands = ['env', 'evil; declare -F; cat /proc/$$/environ', 'printenv AGENT_API_KEY']
  const executions = await runCommands(commands, { options: { cwd: work, sandbox: 'off' }, use: [yes] })
  for (const name of [...Object.keys(secrets), 'BASH_FUNC_evil%%']) delete process.env[name]
  assert.match(executions[0]!.output, /^PATH=/m)
  assert.doesNotMatch(JSON.stringify(executions), /CANARY/)
})

describe('the policy', () => {
  test('allows, blocks and asks, and names the rule', async () => {
    const asked: string[] = []
    const ask = approval(({ message }) => {
      asked.push(message)
      return { block: 'Not today.' }
    })
    const executions = await workspace.run(['echo hi', 'echo a; rm a.txt', 'uname -a'], {}, [ask])
    assert.deepEqual(
      executions.map(({ status, by }) => [status, by]),
      [
        ['ok', undefined],
        ['blocked', 'bash.policy'],
        ['blocked', 'approval'],
      ],
    )
    assert.match(executions[1]!.output, /block "rm"/)
    assert.match(asked.join(), /^Run this command\?\nuname -a\n\(.*no rule allows it.*\)$/)
  })

  test('judges the command after hooks have rewritten it', async () => {
    const rewrite = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'touch "$M"' }))
    const [execution] = await workspace.run(['ls'], {}, [rewrite])
    assert.deepEqual([execution!.status, workspace.isMarked()], ['blocked', false])
  })

  test('blocks commands that need approval if there is no approver, and the model gets the reason', async () => {
    const [execution] = await workspace.run(['uname -a'])
    assert.equal(execution!.status, 'blocked')
    assert.match(execution!.output, /no rule allows it/)
  })
})

describe('options', () => {
  const refused = (options: object, why: RegExp): void =>
    assert.throws(() => bash(options), { code: 'AGENT_INVALID_OPTION', message: why })

  test('that are unknown, or would weaken the guard, are rejected by name', () => {
    refused({ allowed: ['ls'] }, /unknown option "allowed"/)
    refused({ timeoutMs: 2, maxTimeoutMs: 1 }, /"timeoutMs" cannot be longer/)
    refused({ cwd: '/nope' }, /"cwd": there is no \/nope/)
    refused({ cwd: process.execPath }, /"cwd": .* is not a folder/)
    refused({ sandbox: 'maybe' }, /bash: sandbox/)
    refused({ sandbox: { writes: [] } }, /unknown option "writes"/)
    refused({ sandbox: { network: 'no' } }, /"network"/)
    refused({ allowInSandbox: 'yes' }, /"allowInSandbox"/)
  })

  test('cannot declare variables that run code before the command', () => {
    for (const name of ['BASH_ENV', 'ENV', 'LD_PRELOAD', 'PS4', 'SHELLOPTS'])
      refused({ env: { [name]: 'x' } }, new RegExp(`"${name}" would run code`))
    refused({ env: { 'BASH_FUNC_ls%%': '() { :; }' } }, /would run code/)
  })
})

test('P08 a cancelled run leaves no process, and the call is recorded with an unknown outcome', async () => {
  const hour = anHour()
  const cancel = new AbortController()
  const command = `sleep ${hour} & (env -i sleep ${hour} > /dev/null 2>&1 &) ; sleep ${hour}`
  const model = scriptedModel([{ toolCalls: [{ name: 'bash', args: { command } }] }, 'Done.'])
  const running = createAgent({ model, use: [bash({ cwd: work, sandbox: 'off' }), yes] }).run('Go.', {
    signal: cancel.signal,
  })
  await until(() => countWith(hour) === 3)
  cancel.abort()
  const run = await running
  const statuses = [...run.state.execution!.steps].flatMap((step) => step.toolExecutions.map(({ status }) => status))
  assert.deepEqual([run.status, statuses, countWith(hour)], ['cancelled', ['outcomeUnknown'], 0])
})

test('a hundred concurrent commands in many runs of one agent leave no process', async () => {
  const hour = anHour()
  const agent = createAgent({
    model: scriptedModel((request) => {
      const [first] = request.messages
      const id = JSON.stringify(first).match(/id-(\d+)/)![1]!
      return request.messages.length > 1
        ? 'Done.'
        : { toolCalls: [{ name: 'bash', args: { command: `sleep ${hour} & echo "got ${id}"` } }] }
    }),
    use: [bash({ cwd: work, sandbox: 'off' }), yes],
  })
  for (let batch = 0; batch < 4; batch++) {
    const ids = Array.from({ length: 25 }, (_, i) => `${batch}${i}`)
    const runs = await Promise.all(ids.map((id) => agent.run(`id-${id}`)))
    const outputs = runs.map((run) => [...run.state.execution!.steps][0]!.toolExecutions[0]!.output)
    assert.deepEqual(
      outputs,
      ids.map((id) => `Its background processes were ended with it.\ngot ${id}`),
    )
    assert.equal(countWith(hour), 0)
  }
})
