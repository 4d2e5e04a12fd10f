import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import { bashCall, HookProject, saidOf, scriptIn, type Said } from '../hook-project.fixture.ts'

const own = (event: ClaudeEvent, fields: JsonObject): Said => ({
  stdout: JSON.stringify({ hookSpecificOutput: { hookEventName: event, ...fields } }),
})
const says = (permissionDecision: string, permissionDecisionReason = permissionDecision): Said =>
  own('PreToolUse', { permissionDecision, permissionDecisionReason })
const rewrites = (command: string, more: JsonObject = {}): Said =>
  own('PreToolUse', { updatedInput: { command }, ...more })
const no = (reason: string): Said => ({ stderr: reason, exit: 2 })
const quiet: Said = {}

type Row = readonly [title: string, event: ClaudeEvent, scripts: readonly Said[], gives: JsonObject]

const rows: readonly Row[] = [
  [
    'deny overrides everything',
    'PreToolUse',
    [says('allow'), says('ask'), says('defer'), says('deny')],
    { decision: 'deny', reason: 'deny' },
  ],
  ['defer overrides ask', 'PreToolUse', [says('ask'), says('defer')], { decision: 'defer', reason: 'defer' }],
  ['ask overrides allow', 'PreToolUse', [says('allow'), says('ask')], { decision: 'ask', reason: 'ask' }],
  ['allow overrides no opinion', 'PreToolUse', [quiet, says('allow')], { decision: 'allow', reason: 'allow' }],
  ['exit 2 counts as deny', 'PreToolUse', [says('allow'), no('exit')], { decision: 'deny', reason: 'exit' }],
  [
    'the reasons of several denies are joined in order',
    'PreToolUse',
    [says('deny', 'a'), says('ask', 'x'), no('b')],
    { decision: 'deny', reason: 'a\nb' },
  ],
  ['a failure does not change a deny', 'PreToolUse', [{ exit: 1 }, says('deny')], { decision: 'deny', reason: 'deny' }],
  [
    'continue: false overrides every decision',
    'PreToolUse',
    [says('deny'), { stdout: '{"continue":false,"stopReason":"over"}' }],
    { decision: 'stop', reason: 'over', alsoDecided: { decision: 'deny', reason: 'deny' } },
  ],
  [
    'the first reason to stop is used',
    'PostToolUse',
    [{ stdout: '{"continue":false,"stopReason":"a"}' }, { stdout: '{"continue":false,"stopReason":"b"}' }],
    { decision: 'stop', reason: 'a' },
  ],
  [
    'updatedInput replaces the complete input without a decision',
    'PreToolUse',
    [rewrites('pwd')],
    { decision: 'none', updatedInput: { command: 'pwd' } },
  ],
  [
    'updatedInput is ignored with defer',
    'PreToolUse',
    [rewrites('pwd'), says('defer', 'later')],
    { decision: 'defer', reason: 'later' },
  ],
  [
    'the last updatedInput is used',
    'PreToolUse',
    [rewrites('a'), rewrites('b')],
    { decision: 'none', updatedInput: { command: 'b' } },
  ],
  [
    'all contexts are joined',
    'PreToolUse',
    [own('PreToolUse', { additionalContext: 'a' }), quiet, own('PreToolUse', { additionalContext: 'b' })],
    { decision: 'context', additionalContext: 'a\nb' },
  ],
  [
    'a blocked prompt can have context',
    'UserPromptSubmit',
    [{ stdout: '{"decision":"block","reason":"no"}' }, { stdout: 'ctx' }],
    { decision: 'block', reason: 'no', additionalContext: 'ctx' },
  ],
  [
    'block, context and a new output are used together',
    'PostToolUse',
    [
      { stdout: '{"decision":"block","reason":"lint"}' },
      own('PostToolUse', { updatedToolOutput: { stdout: 'x' }, additionalContext: 'c' }),
    ],
    { decision: 'block', reason: 'lint', updatedOutput: { stdout: 'x' }, additionalContext: 'c' },
  ],
  [
    'the last updatedToolOutput is used',
    'PostToolUse',
    [
      own('PostToolUse', { updatedToolOutput: { stdout: 'x' } }),
      own('PostToolUse', { updatedToolOutput: { stdout: 'y' } }),
    ],
    { decision: 'none', updatedOutput: { stdout: 'y' } },
  ],
  [
    'any block continues a turn',
    'Stop',
    [quiet, { stdout: '{"decision":"block","reason":"tests"}' }],
    { decision: 'block', reason: 'tests' },
  ],
  [
    'one retry is enough',
    'PermissionDenied',
    [own('PermissionDenied', { retry: true }), own('PermissionDenied', { retry: false })],
    { decision: 'none', other: { retry: true } },
  ],
  [
    'deny of a PermissionRequest overrides allow',
    'PermissionRequest',
    [
      own('PermissionRequest', { decision: { behavior: 'allow' } }),
      own('PermissionRequest', { decision: { behavior: 'deny', message: 'm' } }),
    ],
    { decision: 'deny', reason: 'm' },
  ],
]

describe('several answers', { concurrency: 3 }, () => {
  for (const [title, event, scripts, gives] of rows) {
    test(title, async () => {
      using project = new HookProject()
      const handlers = scripts.map((said) => ({ type: 'command', command: scriptIn(project, said) }))
      project.handlers(event, handlers)
      const input = { ...bashCall, tool_response: { stdout: 'a' }, prompt: 'p' }
      assert.deepEqual(saidOf(await project.fire(event, input)), gives)
    })
  }
})

describe('handlers of one event', { concurrency: 2 }, () => {
  test('handlers of one event run in parallel', async () => {
    using project = new HookProject()
    const meet = (mine: string, yours: string): JsonObject => ({
      type: 'command',
      command: `touch ${mine}; for i in $(seq 200); do [ -e ${yours} ] && exit 0; sleep 0.05; done; exit 1`,
    })
    project.handlers('PreToolUse', [meet('a', 'b'), meet('b', 'a')])
    const { ran } = await project.fire('PreToolUse', bashCall)
    assert.deepEqual(
      ran.map(({ answer }) => answer.exitCode),
      [0, 0],
    )
  })

  test('all handlers get the original input', async () => {
    using project = new HookProject()
    const seen = { type: 'command', command: 'cat > seen.json' }
    project.handlers('PreToolUse', [{ type: 'command', command: scriptIn(project, rewrites('pwd')) }, seen])
    await project.fire('PreToolUse', bashCall)
    const { tool_input } = JSON.parse(readFileSync(project.path('seen.json'), 'utf8')) as JsonObject
    assert.deepEqual(tool_input, { command: 'ls' })
  })

  const count = { type: 'command', command: 'echo x >> count' }
  const counted = async (project: HookProject): Promise<number> => {
    await project.fire('PreToolUse', bashCall)
    return readFileSync(project.path('count'), 'utf8').trim().split('\n').length
  }

  test('a handler in several settings files runs once', async () => {
    using project = new HookProject()
    const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [count] }] }
    project.settings({ hooks }).settings({ hooks }, '.claude/settings.local.json')
    assert.equal(await counted(project), 1)
  })
})
