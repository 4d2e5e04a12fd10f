import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { shell } from '../../actions/shell.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { JsonObject } from '../../values/json.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { guard } from '../../core/hooks/hook.ts'
import { claudeHooks } from './claude-hooks.ts'
import { HookProject } from './hook-project.fixture.ts'

// S: hooks that fail or lie. H: their configuration. The tests check what was executed.

/** The same hook in each kind of configuration, failing closed. */
type Kind = 'claude' | 'shell'
const kinds: readonly Kind[] = ['claude', 'shell']

function closedHook(kind: Kind, project: HookProject, command: string, timeoutMs = 10_000): Use {
  if (kind === 'shell') {
    return guard('beforeToolUse', shell({ command, cwd: project.dir }), { name: 'check', timeoutMs })
  }
  project.handlers('PreToolUse', [{ type: 'command', command, onFailure: 'block', timeout: timeoutMs / 1000 }])
  return claudeHooks({ dir: project.dir, trust: 'all', home: false })
}

type Tried = { readonly isMarked: boolean; readonly said: string; readonly events: readonly AgentEvent[] }

/** Runs an agent with these hooks, whose model calls a tool that writes to a file. */
async function tried(project: HookProject, use: readonly Use[], command = 'touch mark'): Promise<Tried> {
  const bash = tool({
    name: 'bash',
    description: 'Runs.',
    input: { type: 'object', properties: { command: { type: 'string' } } },
    execute: () => writeFileSync(project.path('mark'), ''),
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'bash', args: { command } }] }, 'Done.'])
  const events: AgentEvent[] = []
  for await (const event of createAgent({ model, use: [bash, ...use] }).stream('Go.')) events.push(event)
  const finished = events.find((event) => event.type === 'toolFinished')
  return {
    isMarked: existsSync(project.path('mark')),
    said: finished?.type === 'toolFinished' ? JSON.stringify(finished.execution.output) : '',
    events,
  }
}

for (const kind of kinds) {
  describe(`failing hooks, as ${kind}`, { concurrency: 2 }, () => {
    const starts = [
      ['is missing', './missing.sh'],
      ['is not executable', './plain.sh'],
      ['has an interpreter that is missing', './odd.sh'],
      ['is longer than the machine allows', `: ${'x'.repeat(140_000)}`],
    ] as const
    for (const [what, command] of starts) {
      test(`S02 a hook whose command ${what} does not allow the call`, async () => {
        using project = new HookProject()
        project.write('plain.sh', '#!/bin/sh\nexit 0\n')
        project.write('odd.sh', '#!/no/such\nexit 0\n', 0o755)
        const { isMarked, said } = await tried(project, [closedHook(kind, project, command)])
        assert.deepEqual([isMarked, said === ''], [false, false])
      })
    }

    const exits = [
      ['0', 'exit 0', true],
      ['1', 'exit 1', false],
      ['2', 'exit 2', false],
      ['3', 'exit 3', false],
      ['127', 'exit 127', false],
      ['a signal', 'kill -9 $$', false],
    ] as const
    for (const [what, command, passes] of exits) {
      test(`S03 a hook that ends with ${what} ${passes ? 'allows the call' : 'blocks'}`, async () => {
        using project = new HookProject()
        assert.equal((await tried(project, [closedHook(kind, project, command)])).isMarked, passes)
      })
    }

    test('S04 exit 2 with invalid JSON blocks, and standard error is the reason', async () => {
      using project = new HookProject()
      const command = `echo '{not json'; echo 'because of this' >&2; exit 2`
      const { isMarked, said } = await tried(project, [closedHook(kind, project, command)])
      assert.equal(isMarked, false)
      assert.match(said, /because of this/)
    })

    const foreign = [
      ['a word that is none', `echo '{"decision":"denny"}'`],
      ['a banner before JSON', `echo welcome; echo '{"decision":"block"}'`],
      ['JSON in a string', `echo '"{\\"decision\\":\\"block\\"}"'`],
      ['an array', 'echo "[]"'],
      ['null', 'echo null'],
      ['half of an object', `echo '{"decision":"block"'`],
    ] as const
    for (const [what, command] of foreign) {
      test(`S05 exit 0 with ${what} blocks`, async () => {
        using project = new HookProject()
        assert.equal((await tried(project, [closedHook(kind, project, command)])).isMarked, false)
      })
    }

    for (const command of ['"; touch evil; #', '$(touch evil)', '`touch evil`', 'a\ntouch evil', "'; touch evil; '"]) {
      test(`S14 arguments are only data on standard input: ${JSON.stringify(command)}`, async () => {
        using project = new HookProject()
        const hook = closedHook(kind, project, 'cat > seen.json; env > seen.env')
        await tried(project, [hook], command)
        assert.ok(!existsSync(project.path('evil')))
        assert.ok(!readFileSync(project.path('seen.env'), 'utf8').includes('touch evil'))
        assert.ok(readFileSync(project.path('seen.json'), 'utf8').includes(JSON.stringify(command).slice(1, -1)))
      })
    }

    test('S23 a hook gets no secret of the process, and its messages contain none', async () => {
      using project = new HookProject()
      process.env['AGENT_API_KEY'] = 'CANARY-KEY'
      process.env['AWS_SECRET_ACCESS_KEY'] = 'CANARY-AWS'
      try {
        const { said, events } = await tried(project, [closedHook(kind, project, 'env >&2; env; exit 2')])
        assert.doesNotMatch(said + JSON.stringify(events), /CANARY/)
      } finally {
        delete process.env['AGENT_API_KEY']
        delete process.env['AWS_SECRET_ACCESS_KEY']
      }
    })
  })
}

test('S05 a decision at the wrong level of the answer has no effect', async () => {
  using project = new HookProject()
  project.handlers('PreToolUse', [{ type: 'command', command: `echo '{"permissionDecision":"deny"}'` }])
  const { isMarked } = await tried(project, [claudeHooks({ dir: project.dir, trust: 'all', home: false })])
  assert.equal(isMarked, true) // as in Claude Code; a guard of Hookloop rejects such an answer
  using other = new HookProject()
  const strict = closedHook('shell', other, `echo '{"permissionDecision":"deny"}'`)
  assert.equal((await tried(other, [strict])).isMarked, false)
})

test('S16 a hook that always prevents a stop is overridden after eight times, and limits apply before', async () => {
  using project = new HookProject()
  project.handlers('Stop', [{ type: 'command', command: 'cat >> stops; echo more >&2; exit 2' }])
  const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false })
  const run = await createAgent({ model: scriptedModel(() => 'Done.'), use: [hooks] }).run('Go.')
  const seen = readFileSync(project.path('stops'), 'utf8').trim().split('\n')
  const active = seen.map((line) => (JSON.parse(line) as JsonObject)['stop_hook_active'])
  assert.deepEqual([run.status, run.status === 'stopped' && run.reason], ['stopped', 'continuationLimit'])
  assert.deepEqual([active.length, active[0], active.slice(1).every((each) => each === true)], [9, false, true])
  const limited = createAgent({ model: scriptedModel(() => 'Done.'), use: [hooks, guards({ maxSteps: 3 })] })
  const short = await limited.run('Go.')
  assert.deepEqual([short.status, short.status === 'stopped' && short.reason], ['stopped', 'stepsLimit'])
})

test('S22 a block, a timeout, a failed start and a denied approval have different messages', async () => {
  const said: string[] = []
  for (const [command, timeoutMs] of [['echo policy >&2; exit 2'], ['sleep 30', 700], ['./missing.sh']] as const) {
    using project = new HookProject()
    said.push((await tried(project, [closedHook('claude', project, command, timeoutMs)])).said)
  }
  using project = new HookProject()
  const ask = `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}'`
  said.push((await tried(project, [closedHook('claude', project, ask), approval(() => ({ block: 'I say no.' }))])).said)
  assert.match(said[0]!, /hook error: policy/)
  assert.match(said[1]!, /timed out/)
  assert.match(said[2]!, /exited with 127/)
  assert.match(said[3]!, /I say no\./)
})

describe('matchers', () => {
  for (const pattern of ['^(a+)+$', '^(?=(a+)+$)a', '(a|aa)+$(?<!b)']) {
    test(`H11 ${pattern} does not hang on a crafted name`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', command: 'true' }], pattern)
      const { merged } = await project.fire('PreToolUse', { tool_name: `${'a'.repeat(60)}!`, tool_input: {} })
      assert.ok(['none', 'deny'].includes(merged.decision))
    })
  }

  test('H11 if a matcher times out, the call is denied', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'true' }], '^(?=(a+)+$)a')
    const { merged } = await project.fire('PreToolUse', { tool_name: `${'a'.repeat(60)}!`, tool_input: {} })
    assert.deepEqual([merged.decision, /timed out after/.test(merged.reason)], ['deny', true])
  })
})
