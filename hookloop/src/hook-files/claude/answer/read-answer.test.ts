import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import { CappedOutput } from '../../../system/processes/capped-output.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import { bashCall, HookProject, saidOf, scriptIn, type Said } from '../hook-project.fixture.ts'
import { readProcess } from './read-answer.ts'

/** The output of a script at an event, its effect, and the expected problem. */
type Row = readonly [
  title: string,
  says: Said,
  gives: JsonObject,
  problem?: RegExp,
  event?: ClaudeEvent,
  input?: JsonObject,
]

const none = { decision: 'none' }
const json = (value: unknown): string => JSON.stringify(value)
const pre = (fields: JsonObject): string => json({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...fields } })

const rows: readonly Row[] = [
  // exit 0
  ['exit 0 without output is no opinion', {}, none],
  [
    'JSON may have blank lines around it',
    { stdout: `\n\n  ${pre({ permissionDecision: 'deny', permissionDecisionReason: 'no' })}\n\n` },
    { decision: 'deny', reason: 'no' },
  ],
  [
    'exit 0 with text is context at UserPromptSubmit',
    { stdout: 'On branch main\n' },
    { decision: 'context', additionalContext: 'On branch main' },
    /^$/,
    'UserPromptSubmit',
    { prompt: 'hi' },
  ],
  ['exit 0 with text has no effect at PreToolUse', { stdout: 'all fine' }, none],
  ['standard error is ignored at exit 0', { stderr: 'debug: looked at it' }, none],
  [
    'an invalid JSON answer has no effect and is reported',
    { stdout: json({ decision: 'allow', systemMessage: 'hello' }) },
    none,
    /"decision" must be "approve" or "block"/,
  ],
  [
    'hookSpecificOutput without its event is invalid',
    { stdout: json({ hookSpecificOutput: { permissionDecision: 'deny' } }) },
    none,
    /"hookEventName" must be "PreToolUse", but it is missing/,
  ],
  [
    'hookSpecificOutput of another event is invalid',
    { stdout: json({ hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: 'x' } }) },
    none,
    /"hookEventName" must be "PreToolUse", but it is "PostToolUse"/,
  ],
  [
    'hookSpecificOutput is invalid at PreCompact',
    { stdout: json({ decision: 'block', hookSpecificOutput: { hookEventName: 'PreCompact' } }) },
    none,
    /PreCompact has no "hookSpecificOutput"/,
    'PreCompact',
    { trigger: 'auto' },
  ],
  [
    'a PermissionRequest answer without a decision is invalid',
    { stdout: json({ systemMessage: 'x', hookSpecificOutput: { hookEventName: 'PermissionRequest' } }) },
    none,
    /PermissionRequest must have a "decision"/,
    'PermissionRequest',
  ],
  [
    'an array is text',
    { stdout: '["a"]' },
    { decision: 'context', additionalContext: '["a"]' },
    /^$/,
    'UserPromptSubmit',
  ],
  [
    'a quoted string is text',
    { stdout: '"a"' },
    { decision: 'context', additionalContext: '"a"' },
    /^$/,
    'UserPromptSubmit',
  ],
  [
    'an object with text in front is text, which is reported',
    { stdout: `checking\n${pre({ permissionDecision: 'deny' })}` },
    none,
    /looks like JSON.*: an answer must be one object and nothing else$/,
  ],
  [
    'the parse error of an invalid object is reported',
    { stdout: String.raw`{"decision":"block","reason":"it matches rm\s+-rf"}` },
    none,
    /looks like JSON.*\(Bad escaped character.*\)$/,
  ],
  [
    'text that starts like an object is text',
    { stdout: '{not json}' },
    { decision: 'context', additionalContext: '{not json}' },
    /^$/,
    'UserPromptSubmit',
  ],
  [
    'unknown keys are ignored, so a script may print its input back',
    { stdout: json({ session_id: 's', tool_name: 'Bash', tool_input: { command: 'ls' }, cwd: '.' }) },
    none,
  ],
  [
    'additionalContext and permissionDecision at the top level are ignored',
    { stdout: json({ permissionDecision: 'deny', additionalContext: 'x' }) },
    none,
  ],
  [
    'suppressOutput and terminalSequence are accepted and decide nothing',
    { stdout: json({ suppressOutput: true, terminalSequence: '\u0007' }) },
    none,
  ],
  [
    'permissionDecision overrides the older decision',
    {
      stdout: json({
        decision: 'approve',
        hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'ask', permissionDecisionReason: 'hm' },
      }),
    },
    { decision: 'ask', reason: 'hm' },
  ],
  // exit 2
  [
    'exit 2 denies a call, with standard error as the reason',
    { stderr: 'rm is not allowed\n', exit: 2 },
    { decision: 'deny', reason: 'rm is not allowed' },
  ],
  [
    'exit 2 does not use standard output as its reason, which is reported',
    { stdout: 'because', exit: 2 },
    { decision: 'deny' },
    /only standard error is read$/,
  ],
  [
    'exit 2 overrides JSON that allows',
    { stdout: pre({ permissionDecision: 'allow' }), stderr: 'no', exit: 2 },
    { decision: 'deny', reason: 'no' },
  ],
  [
    'exit 2 uses the reason of JSON that denies',
    { stdout: pre({ permissionDecision: 'deny', permissionDecisionReason: 'in JSON' }), stderr: 'no', exit: 2 },
    { decision: 'deny', reason: 'in JSON' },
  ],
  [
    'at exit 2 the other fields of JSON still apply',
    {
      stdout: json({
        systemMessage: 'told',
        hookSpecificOutput: { hookEventName: 'PreToolUse', additionalContext: 'c' },
      }),
      stderr: 'no',
      exit: 2,
    },
    { decision: 'deny', reason: 'no', systemMessage: 'told', additionalContext: 'c' },
  ],
  [
    'exit 2 with an invalid answer still blocks',
    { stdout: json({ decision: 'denny' }), stderr: 'no', exit: 2 },
    { decision: 'deny', reason: 'no' },
    /its answer is invalid: "decision" must be/,
  ],
  [
    'exit 2 with broken JSON still blocks',
    { stdout: '{not json', stderr: 'no', exit: 2 },
    { decision: 'deny', reason: 'no' },
    /looks like JSON/,
  ],
  [
    'exit 2 with a decision without hookEventName has no reason, which is reported',
    { stdout: json({ hookSpecificOutput: { permissionDecision: 'deny' }, systemMessage: 'no' }), exit: 2 },
    { decision: 'deny' },
    /its answer is invalid: .*hookEventName/,
  ],
  // other exits
  [
    'another exit code is ignored if there is a valid answer',
    { stdout: pre({ permissionDecision: 'deny', permissionDecisionReason: 'json' }), stderr: 'x', exit: 1 },
    { decision: 'deny', reason: 'json' },
  ],
  [
    'exit 1 stops nothing, and the first line of standard error is reported',
    { stderr: 'Traceback\n  more\n', exit: 1 },
    none,
    /exited with 1: Traceback$/,
  ],
  [
    'the last line of a Python traceback is reported',
    { stderr: 'Traceback (most recent call last):\n  File "x", line 1\nKeyError: 1', exit: 1 },
    none,
    /exited with 1: KeyError: 1$/,
  ],
  ['text in brackets and numbers are plain text', { stdout: '[check] 3 of {3}\n' }, none],
]

describe('the answer of a script', { concurrency: 4 }, () => {
  for (const [title, says, gives, problem = /^$/, event = 'PreToolUse', input = bashCall] of rows) {
    test(title, async () => {
      using project = new HookProject()
      project.handlers(event, [{ type: 'command', command: scriptIn(project, says) }])
      const result = await project.fire(event, input)
      assert.deepEqual(saidOf(result), gives)
      assert.match(result.ran[0]!.answer.problem ?? '', problem)
    })
  }
})

test('a warning about a hook says that some of its processes may still be running', () => {
  const empty = new CappedOutput({ head: 10, tail: 10 }).result()
  const problem = '3 of its processes could not be ended, and may still be running.'
  const result = { exitCode: 0, signal: null, stdout: empty, stderr: empty, leftBehind: true, problem }
  for (const ended of ['exited', 'timedOut'] as const) {
    const read = readProcess({ ...result, ended }, 'PreToolUse', 'lint.sh')
    assert.match(read.problem ?? '', /^lint\.sh (has ended|timed out)\. 3 of its processes could not be ended/)
  }
})
