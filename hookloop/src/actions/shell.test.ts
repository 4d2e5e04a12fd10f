import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as z from 'zod'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { guard, hook, observe } from '../core/hooks/hook.ts'
import type { HookOutcome } from '../core/hooks/outcome.ts'
import { anHour, countWith, endWith, until } from '../system/processes/processes.fixture.ts'
import { scriptedModel } from '../models/scripted.ts'
import { textOfJson } from '../values/json.ts'
import type { Warning } from '../core/state/warning.ts'
import { fire } from '../testing/fire.ts'
import { shell, type ShellOptions } from './shell.ts'

type Judged = { readonly options?: ShellOptions; readonly timeoutMs?: number; readonly args?: object }

function judge(command: string, { options = {}, timeoutMs, args = { n: 1 } }: Judged = {}): Promise<HookOutcome> {
  const judges = guard('beforeToolUse', shell({ command, ...options }), {
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
  return fire(judges, 'beforeToolUse', { toolCall: { id: 'c1', name: 'work', args: args as never } })
}

suite('shell as a guard', () => {
  const answers: readonly [what: string, command: string, decision: string | undefined, message: RegExp][] = [
    ['prints nothing and exits with 0', 'cat > /dev/null', undefined, /^$/],
    ['prints an empty object', 'echo "{}"', undefined, /^$/],
    ['prints a block', `echo '{"decision":"block","reason":"never"}'`, 'block', /^never$/],
    ['prints deny', `echo '{"decision":"deny","reason":"never"}'`, 'block', /^never$/],
    ['prints ask_user', `echo '{"decision":"ask_user","reason":"sure?"}'`, 'ask', /^sure\?$/],
    ['allows', `echo '{"decision":"allow","reason":"ok"}'`, 'allow', /^ok$/],
    ['exits with 2 and names its folder', 'echo "/opt/keys/echo: Never." >&2; exit 2', 'block', /^echo: Never\.$/],
    ['exits with 2', 'echo "not on Sundays" >&2; exit 2', 'block', /^not on Sundays$/],
    ['exits with 2 and prints half of a JSON object', 'echo "{not json"; echo no >&2; exit 2', 'block', /^no$/],
    ['exits with 1', 'echo oops >&2; exit 1', 'block', /exited with 1: oops/],
    ['exits with 3', 'exit 3', 'block', /exited with 3/],
    ['does not exist', 'no-such-command-anywhere', 'block', /exited with 127/],
    ['kills itself', 'kill -9 $$', 'block', /was killed by SIGKILL/],
    ['prints text', 'echo hello', 'block', /not JSON: hello/],
    ['prints a line before its outcome', `echo starting; echo '{"decision":"allow"}'`, 'block', /not JSON/],
    ['prints a list', 'echo "[]"', 'block', /JSON object/],
    ['prints null', 'echo null', 'block', /JSON object/],
    ['prints a JSON string', `echo '"{}"'`, 'block', /JSON object/],
    [
      'prints an unknown decision',
      `echo '{"decision":"denny"}'`,
      'block',
      /"decision" of the answer cannot be "denny"/,
    ],
    [
      'prints a field of Claude Code',
      `echo '{"permissionDecision":"deny"}'`,
      'block',
      /unknown field "permissionDecision"/,
    ],
    ['changes arguments', `echo '{"updatedInput":{"n":2}}'`, 'block', /a guard cannot change it/],
    ['prints __proto__', `echo '{"__proto__":{"decision":"allow"}}'`, 'block', /unknown field "__proto__"/],
  ]
  for (const [what, command, decision, message] of answers) {
    test(`a command that ${what} ${decision === undefined ? 'has no opinion' : `means ${decision}`}`, async () => {
      const outcome = await judge(command)
      assert.equal(outcome.decision, decision)
      assert.match(outcome.message ?? '', message)
    })
  }

  test('a command that times out blocks', async () => {
    const outcome = await judge('sleep 60', { timeoutMs: 50 })
    assert.deepEqual([outcome.decision, /timed out after 50 ms/.test(outcome.message!)], ['block', true])
  })

  test('a command that prints without end blocks, and its output is not kept in memory', async () => {
    const outcome = await judge('head -c 300000000 /dev/zero | tr "\\0" x')
    assert.deepEqual([outcome.decision, /printed \d+ bytes/.test(outcome.message!)], ['block', true])
  })

  test('a command reads the event as JSON, and nothing of it is on its command line', async () => {
    const marker = '"; exit 2; #$(exit 2)`exit 2`'
    const outcome = await judge('grep -q "exit 2" && echo \'{"decision":"allow"}\'', { args: { n: marker } })
    assert.equal(outcome.decision, 'allow')
  })

  test('the answer of a command does not wait for its background processes', async () => {
    const outcome = await judge('(sleep 60 &) ; echo \'{"decision":"allow"}\'')
    assert.equal(outcome.decision, 'allow')
  })
})

suite('processes of a command that cannot be ended', { skip: process.platform !== 'linux' && 'it reads /proc' }, () => {
  const endings: readonly [what: string, command: string, called: RegExp][] = [
    ['exits normally', 'exit 0', /^done$/],
    ['allows', `echo '{"decision":"allow","reason":"ok"}'`, /^done$/],
    ['blocks', 'echo never >&2; exit 2', /never/],
    ['fails', 'echo oops >&2; exit 1', /failed/],
  ]
  for (const [what, command, called] of endings) {
    test(`are a warning of the run if it ${what}`, async (t) => {
      const hour = anHour()
      const judges = guard('beforeToolUse', shell({ command: `(sleep ${hour} > /dev/null 2>&1 &) ; ${command}` }))
      const work = tool({ name: 'work', description: 'Works.', input: z.object({}), execute: () => 'done' })
      const model = scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'Done.'])
      const kill = t.mock.method(process, 'kill', () => true)
      const run = await createAgent({ model, use: [work, judges] }).run('Go.')
      kill.mock.restore()
      assert.ok(await until(() => countWith(hour) === 1))
      endWith(hour)
      assert.match(textOfJson(run.state.execution!.steps.at(0)!.toolExecutions[0]!.output), called)
      const [{ message }] = run.warnings as [Warning]
      assert.match(message, /processes could not be ended, and may still be running\./)
    })
  }
})

suite('shell as a hook', () => {
  test('a command changes arguments, the conversation and metadata', async () => {
    const answer = { updatedInput: { n: 2 }, additionalContext: 'It is Sunday.', metadata: { seen: true } }
    const changes = hook('beforeToolUse', shell({ args: ['printf', '%s', JSON.stringify(answer)] }))
    const { args, state } = await fire(changes, 'beforeToolUse', { toolCall: { name: 'work', args: { n: 1 } } })
    assert.deepEqual([args, state?.metadata], [{ n: 2 }, { seen: true }])
    const [message] = state!.appended!
    assert.equal(message!.role, 'user')
    assert.match(
      JSON.stringify(message!.content),
      /\[(\w+) context from hook \\"shell:\w+\\"\]\\nIt is Sunday\.\\n\[end \1\]/,
    )
  })

  test('a command changes a result and the user input', async () => {
    const rewrites = shell({ command: `echo '{"updatedOutput":"redacted"}'` })
    const after = await fire(hook('afterToolUse', rewrites), 'afterToolUse')
    const said = await fire(
      hook('onUserInput', shell({ command: `echo '{"updatedInput":"Be brief."}'` })),
      'onUserInput',
    )
    assert.deepEqual([after.output, said.input?.content], ['redacted', [{ type: 'text', text: 'Be brief.' }]])
  })

  test('a command requests another step when the run would stop', async () => {
    const more = hook('onStop', shell({ command: `echo '{"continue":"Run the tests."}'` }))
    const { votes } = await fire(more, 'onStop')
    assert.deepEqual(
      votes?.map(({ decision, message }) => [decision, message]),
      [['requestContinuation', 'Run the tests.']],
    )
  })
})

test('a command that observes decides nothing', async () => {
  const watches = observe('beforeToolUse', shell({ command: `echo '{"decision":"block"}'` }))
  assert.deepEqual(await fire(watches, 'beforeToolUse'), {})
})

test('shell throws for invalid options', () => {
  for (const options of [{}, { command: ' ' }, { command: 'ls', args: ['ls'] }, { args: [] }, { comand: 'ls' }]) {
    assert.throws(() => shell(options as ShellOptions), { code: 'AGENT_INVALID_OPTION' })
  }
})
