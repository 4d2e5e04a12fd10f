import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ProcessResult } from '../../../system/processes/run-process.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { readJson, readProcess, readVerdict } from './read-answer.ts'

suite('the verdict of a prompt or agent handler', () => {
  const reason = 'No.'
  const block = { block: { reason } }
  const stop = { stop: { reason } }
  const deny = { permission: { decision: 'deny', reason } }
  const cases: readonly (readonly [ClaudeEvent, HandlerAnswer, continuing: HandlerAnswer])[] = [
    ['Stop', block, block],
    ['SubagentStop', block, block],
    ['PreToolUse', { ...deny, ...stop } as HandlerAnswer, deny as HandlerAnswer],
    ['PostToolUse', { ...block, ...stop }, block],
    ['TeammateIdle', stop, block],
    ['PostToolBatch', { ...block, ...stop }, { ...block, ...stop }],
    ['UserPromptSubmit', { ...block, ...stop }, { ...block, ...stop }],
    ['UserPromptExpansion', { ...block, ...stop }, { ...block, ...stop }],
    ['PermissionRequest', {}, {}],
    ['PermissionDenied', {}, {}],
    ['TaskCreated', block, block],
  ]
  for (const [event, expected, continuing] of cases) {
    test(`that something is not ok has the effect of its event: ${event}`, () => {
      assert.deepEqual(readVerdict({ ok: false, reason }, event, false), expected)
      assert.deepEqual(readVerdict({ ok: false, reason }, event, true), continuing)
      assert.deepEqual(readVerdict({ ok: true, reason }, event, false), {})
    })
  }

  test('needs no reason, and is a failure if it has another form', () => {
    assert.deepEqual(readVerdict({ ok: false }, 'Stop', false), { block: { reason: '' } })
    for (const value of [null, 'ok', {}, { ok: 'yes' }, { ok: false, reason: 1 }, { ok: false, impossible: 'no' }])
      assert.equal(readVerdict(value, 'Stop', false).failed, 'invalidOutput', JSON.stringify(value))
  })
})

suite('a JSON answer of a Claude Code hook', () => {
  const wrong: readonly (readonly [string, unknown])[] = [
    ['continue', 'no'],
    ['stopReason', 1],
    ['suppressOutput', 'yes'],
    ['systemMessage', 1],
    ['terminalSequence', 1],
    ['reason', 1],
    ['decision', 'deny'],
  ]
  for (const [name, value] of wrong) {
    test(`has no effect if a field has a wrong type: ${name}`, () => {
      const answer = readJson({ decision: 'block', reason: 'No.', [name]: value }, 'PostToolUse')
      assert.match(answer.problem ?? '', new RegExp(`"${name}" must be`))
      assert.equal(answer.block, undefined)
    })
  }

  test('decides about a call in the older form', () => {
    const decided = (decision: string) => readJson({ decision, reason: 'Why.' }, 'PreToolUse').permission
    assert.deepEqual(decided('approve'), { decision: 'allow', reason: 'Why.' })
    assert.deepEqual(decided('block'), { decision: 'deny', reason: 'Why.' })
    assert.deepEqual(readJson({ decision: 'approve' }, 'PostToolUse'), {})
    assert.deepEqual(readJson({ decision: 'block', reason: 'Why.' }, 'PostToolUse'), { block: { reason: 'Why.' } })
  })

  /** The field without effect, and the one that was meant, or those that have an effect. */
  const mistakes: readonly (readonly [ClaudeEvent, object, wrong: string, right: string])[] = [
    [
      'PreToolUse',
      { permissionDecision: 'deny' },
      'permissionDecision',
      '"permissionDecision" in "hookSpecificOutput"',
    ],
    ['UserPromptSubmit', { additionalContext: 'x' }, 'additionalContext', 'with "hookEventName": "UserPromptSubmit"'],
    ['Stop', { permissionDecision: 'deny' }, 'permissionDecision', 'there: decision, continue, additionalContext'],
    ['PostToolUse', { updatedInput: {} }, 'updatedInput', 'updatedToolOutput'],
    ['SessionStart', { decision: 'block', reason: 'x' }, 'decision', 'there: additionalContext'],
    ['SessionStart', { continue: false }, 'continue', 'there: additionalContext'],
    ['PreToolUse', { reason: 'x' }, 'reason', 'without a "decision"'],
    ['PreToolUse', { stopReason: 'x' }, 'stopReason', 'without "continue": false'],
    ['PreToolUse', { hook_specific_output: {} }, 'hook_specific_output', '"hookSpecificOutput" at the top level'],
    ['PreToolUse', { permission_decision: 'deny' }, 'permission_decision', '"permissionDecision" in'],
    ['PreToolUse', { block: true, message: 'x' }, 'block', 'there: decision, continue, permissionDecision'],
    ['SessionEnd', { deny: true }, 'deny', 'there: none'],
    ['PreToolUse', own('PreToolUse', { reason: 'x' }), 'reason', '"permissionDecisionReason" in'],
    ['PreToolUse', own('PreToolUse', { decision: 'block' }), 'decision', '"permissionDecision" in'],
    ['PreToolUse', own('PreToolUse', { modifiedInput: {} }), 'modifiedInput', 'updatedInput'],
    ['Stop', own('Stop', { decision: 'block' }), 'decision', '"decision" at the top level'],
    ['Notification', own('Notification', { additionalContext: 'x' }), 'additionalContext', 'there: none'],
    ['PermissionRequest', { decision: 'approve' }, 'decision', '"behavior": "allow" or "deny"'],
  ]
  for (const [event, value, wrong, right] of mistakes)
    test(`has a hint if a field has no effect: ${JSON.stringify(value)} at ${event}`, () => {
      const answer = readJson(value, event)
      assert.ok(answer.hint?.startsWith(`its "${wrong}" has no effect`) && answer.hint.includes(right), answer.hint)
      assert.deepEqual([answer.permission, answer.block, answer.stop, answer.problem], Array(4).fill(undefined))
    })
})

function own(hookEventName: ClaudeEvent, fields: object): object {
  return { hookSpecificOutput: { hookEventName, ...fields } }
}

suite('the hookSpecificOutput of a Claude Code hook', () => {
  const request = (fields: object): object => ({ behavior: 'allow', ...fields })
  const refusal = (fields: object): object => ({ behavior: 'deny', ...fields })
  /** A field of an event, values that it may have, and others. */
  const fields: readonly (readonly [ClaudeEvent, string, valid: readonly unknown[], wrong: readonly unknown[]])[] = [
    ['PreToolUse', 'permissionDecision', ['allow', 'deny', 'ask', 'defer'], ['block', true]],
    ['PreModelSwitch', 'permissionDecision', ['allow', 'deny', 'ask'], ['defer']],
    ['PreToolUse', 'permissionDecisionReason', ['Why.'], [1]],
    ['PreToolUse', 'updatedInput', [{}], ['ls', ['ls'], null]],
    ['Stop', 'additionalContext', ['More.'], [1, ['More.']]],
    ['SessionStart', 'watchPaths', [[], ['a', 'b']], ['a', ['a', 1], [1, 'a'], { 0: 'a' }]],
    ['SessionStart', 'reloadSkills', [true, false], ['yes']],
    ['Elicitation', 'action', ['accept', 'decline', 'cancel'], ['deny']],
    [
      'PermissionRequest',
      'decision',
      [
        ...[{}, { updatedInput: {} }, { updatedPermissions: [] }].map(request),
        ...[{}, { message: 'No.' }, { interrupt: true }].map(refusal),
      ],
      [
        'allow',
        { behavior: 'ask' },
        ...[{ updatedInput: 'ls' }, { updatedPermissions: {} }].map(request),
        ...[{ message: 1 }, { interrupt: 'yes' }].map(refusal),
      ],
    ],
  ]
  for (const [event, name, valid, wrong] of fields) {
    test(`has no effect if a field has a wrong value: ${name} of ${event}`, () => {
      const read = (value: unknown): HandlerAnswer =>
        readJson({ hookSpecificOutput: { hookEventName: event, [name]: value } }, event)
      for (const value of valid) assert.equal(read(value).problem, undefined, JSON.stringify(value))
      for (const value of wrong) {
        const problem = `its answer is invalid: "${name}" cannot be ${JSON.stringify(value)}`
        assert.deepEqual(read(value), { problem })
      }
    })
  }
})

suite('the end of a Claude Code command', () => {
  const output = (head = '', droppedBytes = 0) => ({
    head,
    tail: '',
    droppedBytes,
    totalBytes: head.length + droppedBytes,
  })
  const read = (given: object, event: ClaudeEvent = 'PreToolUse'): HandlerAnswer => {
    const usual = { ended: 'exited', exitCode: 0, signal: null, stdout: output(), stderr: output(), leftBehind: false }
    return readProcess({ ...usual, ...given } as unknown as ProcessResult, event, 'it')
  }

  test('may change the input, in which a number that JavaScript would round is a string', () => {
    const text =
      '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"id":9007199254740993,"near":12.5}}}'
    assert.deepEqual(read({ stdout: output(text) }).updatedInput, { id: '9007199254740993', near: 12.5 })
  })
})
