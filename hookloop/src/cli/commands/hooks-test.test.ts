import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, test } from 'node:test'
import { holds, HookProject } from '../../hook-files/claude/hook-project.fixture.ts'
import type { JsonObject } from '../../values/json.ts'
import { hookloop, type Ended } from '../cli.fixture.ts'

const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }

type Report = JsonObject & { readonly decision: string; readonly hooks: readonly JsonObject[] }

function tested(args: readonly string[], input: JsonObject | string, cwd?: string): Promise<Ended> {
  const text = typeof input === 'string' ? input : JSON.stringify(input)
  return hookloop(['hooks', 'test', ...args], { env, input: text, ...(cwd !== undefined && { cwd }) })
}

async function report(args: readonly string[], input: JsonObject, cwd?: string): Promise<Report> {
  const { code, stdout, stderr } = await tested([...args, '--json'], input, cwd)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as Report
}

const bash = { tool_name: 'Bash', tool_input: { command: 'ls' } }

describe('hookloop hooks test', { concurrency: 2 }, () => {
  test('the report has every field, and null for those that no hook set', async () => {
    const { hooks, ...rest } = await report(['PreToolUse', '--handler', 'true'], bash)
    assert.deepEqual(rest, {
      decision: 'none',
      reason: null,
      updatedInput: null,
      updatedOutput: null,
      additionalContext: null,
      systemMessage: null,
    })
    assert.equal(hooks.length, 1)
  })

  test('the report has one entry for each hook that ran, in order', async () => {
    using project = new HookProject()
    project.settings({
      hooks: {
        PreToolUse: [
          { matcher: 'Bash', hooks: [{ type: 'command', command: 'echo a >&2; exit 2' }] },
          { matcher: 'Edit', hooks: [{ type: 'command', command: 'exit 2' }] },
          { hooks: [{ type: 'command', command: 'true' }] },
        ],
      },
    })
    const { hooks } = await report(['PreToolUse', '--dir', project.dir, '--no-user'], bash)
    assert.deepEqual(
      hooks.map(({ command, decision, matcher }) => [command, decision, matcher]),
      [
        ['echo a >&2; exit 2', 'deny', 'Bash'],
        ['true', 'none', null],
      ],
    )
  })

  for (const name of ['PreToolUse', 'pretooluse', 'pre_tool_use', 'pre-tool-use', 'PRE_TOOL_USE']) {
    test(`${name} is accepted as PreToolUse`, async () => {
      const { decision } = await report(
        [name, '--handler', `${holds('e.hook_event_name === "PreToolUse"')} && exit 2`],
        bash,
      )
      assert.equal(decision, 'deny')
    })
  }

  test('the event can be named by its Hookloop trigger', async () => {
    const handler = `${holds('e.tool_name === "Write" && e.tool_input.file_path.startsWith("/")')} && exit 2`
    const input = {
      trigger: 'beforeToolUse',
      toolCall: { id: '1', name: 'write_file', args: { path: 'a', content: '' } },
    }
    const { decision } = await report(['beforeToolUse', '--handler', handler], input)
    assert.equal(decision, 'deny')
  })

  test('without --dir untrusted hooks do not run, and that is reported', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'touch mark; exit 2' }])
    const { code, stdout, stderr } = await tested(['PreToolUse', '--json', '--no-user'], bash, project.dir)
    assert.deepEqual([code, (JSON.parse(stdout) as Report).decision], [0, 'none'])
    assert.match(
      stderr,
      /^Not trusted as it is now: \.claude\/settings\.json\. .* Review them with: .* trust\. Or name the folder with --dir\.\n$/,
    )
    assert.ok(!existsSync(project.path('mark')))
  })

  test('hooks of an agent or a skill run if the payload names it', async () => {
    using project = new HookProject()
    const head = (name: string): string =>
      `---\nname: ${name}\ndescription: d\nhooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: echo ${name} >&2; exit 2\n---\n`
    project.write('.claude/skills/careful/SKILL.md', head('careful'))
    project.write('.claude/agents/reviewer.md', head('reviewer'))
    const args = ['PreToolUse', '--dir', project.dir, '--no-user']
    const [plain, agent, skill] = await Promise.all([
      report(args, bash),
      report(args, { ...bash, agent_type: 'reviewer' }),
      report(args, { ...bash, skills: ['careful'] }),
    ])
    assert.deepEqual([plain.decision, agent['reason'], skill['reason']], ['none', 'reviewer', 'careful'])
  })

  test('without --json the report is text', async () => {
    const { code, stdout } = await tested(['PreToolUse', '--handler', 'echo no >&2; exit 2'], bash)
    assert.equal(code, 0)
    assert.match(stdout, /^deny: no\n {2}deny {4}echo no >&2; exit 2 \d+ ms\n$/)
  })

  for (const [what, args, input] of [
    ['an event that is none', ['PreToolUs', '--handler', 'true'], '{}'],
    ['a payload that is no JSON', ['PreToolUse', '--handler', 'true'], '{'],
    ['a payload that is no object', ['PreToolUse', '--handler', 'true'], '[]'],
    ['a handler that is empty', ['PreToolUse', '--handler', ' '], '{}'],
  ] as const) {
    test(`${what} is rejected with 2`, async () => {
      const { code, stdout, stderr } = await tested([...args, '--json'], input)
      assert.deepEqual([code === 0, stdout], [false, ''])
      assert.notEqual(stderr, '')
    })
  }
})
