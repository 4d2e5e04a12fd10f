import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import { CappedOutput } from '../../../system/processes/capped-output.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import { bashCall, HookProject, languages, saidOf, scriptIn, type Said } from '../hook-project.fixture.ts'
import { readProcess } from './read-answer.ts'

/** One row: the output of a script at an event, and its effect. */
type Row = {
  readonly title: string
  readonly event: ClaudeEvent
  readonly input?: JsonObject
  readonly says: Said
  readonly gives: JsonObject
  /** The expected problem. */
  readonly problem?: RegExp
}

const json = (value: unknown): string => JSON.stringify(value)
const pre = (fields: JsonObject): string => json({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...fields } })

const rows: readonly Row[] = [
  // exit 0
  { title: 'exit 0 without output is no opinion', event: 'PreToolUse', says: {}, gives: { decision: 'none' } },
  {
    title: 'JSON may have blank lines around it',
    event: 'PreToolUse',
    says: { stdout: `\n\n  ${pre({ permissionDecision: 'deny', permissionDecisionReason: 'no' })}\n\n` },
    gives: { decision: 'deny', reason: 'no' },
  },
  {
    title: 'exit 0 with text is context at UserPromptSubmit',
    event: 'UserPromptSubmit',
    input: { prompt: 'hi' },
    says: { stdout: 'On branch main\n' },
    gives: { decision: 'context', additionalContext: 'On branch main' },
  },
  {
    title: 'exit 0 with text has no effect at PreToolUse',
    event: 'PreToolUse',
    says: { stdout: 'all fine' },
    gives: { decision: 'none' },
  },
  {
    title: 'standard error is ignored at exit 0',
    event: 'PreToolUse',
    says: { stderr: 'debug: looked at it' },
    gives: { decision: 'none' },
  },
  {
    title: 'an invalid JSON answer has no effect and is reported',
    event: 'PreToolUse',
    says: { stdout: json({ decision: 'allow', systemMessage: 'hello' }) },
    gives: { decision: 'none' },
    problem: /"decision" must be "approve" or "block"/,
  },
  {
    title: 'hookSpecificOutput without its event is invalid',
    event: 'PreToolUse',
    says: { stdout: json({ hookSpecificOutput: { permissionDecision: 'deny' } }) },
    gives: { decision: 'none' },
    problem: /"hookEventName" must be "PreToolUse", but it is missing/,
  },
  {
    title: 'hookSpecificOutput of another event is invalid',
    event: 'PreToolUse',
    says: { stdout: json({ hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: 'x' } }) },
    gives: { decision: 'none' },
    problem: /"hookEventName" must be "PreToolUse", but it is "PostToolUse"/,
  },
  {
    title: 'hookSpecificOutput is invalid at PreCompact',
    event: 'PreCompact',
    input: { trigger: 'auto' },
    says: { stdout: json({ decision: 'block', hookSpecificOutput: { hookEventName: 'PreCompact' } }) },
    gives: { decision: 'none' },
    problem: /PreCompact has no "hookSpecificOutput"/,
  },
  {
    title: 'a PermissionRequest answer without a decision is invalid',
    event: 'PermissionRequest',
    says: { stdout: json({ systemMessage: 'x', hookSpecificOutput: { hookEventName: 'PermissionRequest' } }) },
    gives: { decision: 'none' },
    problem: /PermissionRequest must have a "decision"/,
  },
  {
    title: 'an array is text',
    event: 'UserPromptSubmit',
    says: { stdout: '["a"]' },
    gives: { decision: 'context', additionalContext: '["a"]' },
  },
  {
    title: 'a quoted string is text',
    event: 'UserPromptSubmit',
    says: { stdout: '"a"' },
    gives: { decision: 'context', additionalContext: '"a"' },
  },
  {
    title: 'an object with text in front is text, which is reported',
    event: 'PreToolUse',
    says: { stdout: `checking\n${pre({ permissionDecision: 'deny' })}` },
    gives: { decision: 'none' },
    problem: /looks like JSON.*: an answer must be one object and nothing else$/,
  },
  {
    title: 'the parse error of an invalid object is reported',
    event: 'PreToolUse',
    says: { stdout: String.raw`{"decision":"block","reason":"it matches rm\s+-rf"}` },
    gives: { decision: 'none' },
    problem: /looks like JSON.*\(Bad escaped character.*\)$/,
  },
  {
    title: 'text that starts like an object is text',
    event: 'UserPromptSubmit',
    says: { stdout: '{not json}' },
    gives: { decision: 'context', additionalContext: '{not json}' },
  },
  {
    title: 'unknown keys are ignored, so a script may print its input back',
    event: 'PreToolUse',
    says: { stdout: json({ session_id: 's', tool_name: 'Bash', tool_input: { command: 'ls' }, cwd: '.' }) },
    gives: { decision: 'none' },
  },
  {
    title: 'additionalContext and permissionDecision at the top level are ignored',
    event: 'PreToolUse',
    says: { stdout: json({ permissionDecision: 'deny', additionalContext: 'x' }) },
    gives: { decision: 'none' },
  },
  {
    title: 'suppressOutput and terminalSequence are accepted and decide nothing',
    event: 'PreToolUse',
    says: { stdout: json({ suppressOutput: true, terminalSequence: '\u0007' }) },
    gives: { decision: 'none' },
  },
  {
    title: 'permissionDecision overrides the older decision',
    event: 'PreToolUse',
    says: {
      stdout: json({
        decision: 'approve',
        hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'ask', permissionDecisionReason: 'hm' },
      }),
    },
    gives: { decision: 'ask', reason: 'hm' },
  },
  // exit 2
  {
    title: 'exit 2 denies a call, with standard error as the reason',
    event: 'PreToolUse',
    says: { stderr: 'rm is not allowed\n', exit: 2 },
    gives: { decision: 'deny', reason: 'rm is not allowed' },
  },
  {
    title: 'exit 2 does not use standard output as its reason, which is reported',
    event: 'PreToolUse',
    says: { stdout: 'because', exit: 2 },
    gives: { decision: 'deny' },
    problem: /only standard error is read$/,
  },
  {
    title: 'exit 2 overrides JSON that allows',
    event: 'PreToolUse',
    says: { stdout: pre({ permissionDecision: 'allow' }), stderr: 'no', exit: 2 },
    gives: { decision: 'deny', reason: 'no' },
  },
  {
    title: 'exit 2 uses the reason of JSON that denies',
    event: 'PreToolUse',
    says: { stdout: pre({ permissionDecision: 'deny', permissionDecisionReason: 'in JSON' }), stderr: 'no', exit: 2 },
    gives: { decision: 'deny', reason: 'in JSON' },
  },
  {
    title: 'at exit 2 the other fields of JSON still apply',
    event: 'PreToolUse',
    says: {
      stdout: json({
        systemMessage: 'told',
        hookSpecificOutput: { hookEventName: 'PreToolUse', additionalContext: 'c' },
      }),
      stderr: 'no',
      exit: 2,
    },
    gives: { decision: 'deny', reason: 'no', systemMessage: 'told', additionalContext: 'c' },
  },
  {
    title: 'exit 2 with an invalid answer still blocks',
    event: 'PreToolUse',
    says: { stdout: json({ decision: 'denny' }), stderr: 'no', exit: 2 },
    gives: { decision: 'deny', reason: 'no' },
    problem: /its answer is invalid: "decision" must be/,
  },
  {
    title: 'exit 2 with broken JSON still blocks',
    event: 'PreToolUse',
    says: { stdout: '{not json', stderr: 'no', exit: 2 },
    gives: { decision: 'deny', reason: 'no' },
    problem: /looks like JSON/,
  },
  {
    title: 'exit 2 with a decision without hookEventName has no reason, which is reported',
    event: 'PreToolUse',
    says: { stdout: json({ hookSpecificOutput: { permissionDecision: 'deny' }, systemMessage: 'no' }), exit: 2 },
    gives: { decision: 'deny' },
    problem: /its answer is invalid: .*hookEventName/,
  },
  // other exits
  {
    title: 'another exit code is ignored if there is a valid answer',
    event: 'PreToolUse',
    says: { stdout: pre({ permissionDecision: 'deny', permissionDecisionReason: 'json' }), stderr: 'x', exit: 1 },
    gives: { decision: 'deny', reason: 'json' },
  },
  {
    title: 'exit 1 stops nothing, and the first line of standard error is reported',
    event: 'PreToolUse',
    says: { stderr: 'Traceback\n  more\n', exit: 1 },
    gives: { decision: 'none' },
    problem: /exited with 1: Traceback$/,
  },
  {
    title: 'the last line of a Python traceback is reported',
    event: 'PreToolUse',
    says: { stderr: 'Traceback (most recent call last):\n  File "x", line 1\nKeyError: 1', exit: 1 },
    gives: { decision: 'none' },
    problem: /exited with 1: KeyError: 1$/,
  },
  {
    title: 'text in brackets and numbers are plain text',
    event: 'PreToolUse',
    says: { stdout: '[check] 3 of {3}\n' },
    gives: { decision: 'none' },
  },
]

languages.forEach((language, i) => {
  // The effect does not depend on the language, so the slower ones have a sample of the rows.
  const sample = language === 'bash' ? rows : rows.filter((_, row) => row % 6 === i)
  describe(`the answer of a script in ${language}`, { concurrency: 4 }, () => {
    for (const { title, event, input = bashCall, says, gives, problem } of sample) {
      test(title, async () => {
        using project = new HookProject()
        project.handlers(event, [{ type: 'command', command: scriptIn(project, language, says) }])
        const result = await project.fire(event, input)
        assert.deepEqual(saidOf(result), gives)
        assert.match(result.ran[0]!.answer.problem ?? '', problem ?? /^$/)
      })
    }
  })
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
