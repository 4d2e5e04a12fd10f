import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { EventResult } from '../run/run-event.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import type { MergedAnswer } from './merge-answers.ts'
import { decidedAt, warningsOf } from './report.ts'

/** An event whose handlers, `one.sh` and so on, have answered. */
function eventOf(merged: Partial<MergedAnswer>, ...answers: readonly HandlerAnswer[]): EventResult {
  const ran = answers.map((answer, i) => ({
    handler: { type: 'command', command: `${['one', 'two', 'three'][i]}.sh` },
    source: { kind: 'project', file: 'settings.json' },
    durationMs: 1,
    answer,
  }))
  return { merged: { decision: 'none', reason: '', ...merged }, ran: ran as never, problems: [] }
}

suite('the files behind a decision', () => {
  const permission = (decision: 'allow' | 'deny' | 'ask' | 'defer'): HandlerAnswer => ({
    permission: { decision, reason: '' },
  })
  const block: HandlerAnswer = { block: { reason: '' } }
  const cases: readonly (readonly [MergedAnswer['decision'], HandlerAnswer, HandlerAnswer])[] = [
    ['stop', { stop: { reason: '' } }, block],
    ['deny', permission('deny'), permission('ask')],
    ['deny', block, permission('allow')],
    ['deny', { request: { behavior: 'deny', message: '', interrupt: false } }, { request: { behavior: 'allow' } }],
    ['deny', { other: { action: 'decline' } }, { other: { title: 'x' } }],
    ['block', block, { context: 'x' }],
    ['defer', permission('defer'), permission('ask')],
    ['ask', permission('ask'), permission('allow')],
    ['allow', permission('allow'), permission('ask')],
    ['allow', { request: { behavior: 'allow' } }, {}],
    ['context', { context: 'x' }, { systemMessage: 'x' }],
    ['none', { updatedInput: {} }, {}],
    ['none', { updatedOutput: 1 }, { context: 'x' }],
  ]
  for (const [decision, deciding, other] of cases) {
    test(`are those of the handlers that decided it: ${decision} by ${JSON.stringify(deciding)}`, () => {
      assert.match(decidedAt(eventOf({ decision }, other, deciding))!, /^settings\.json: two\.sh$/)
      assert.equal(decidedAt(eventOf({ decision }, other)), undefined)
    })
  }
})

suite('the warnings of an event', () => {
  const textsOf = (result: EventResult, event: ClaudeEvent = 'PreToolUse') =>
    warningsOf(result, { event, input: {}, matched: [] }).map(({ message }) => message)

  test('have its message for the user, its problems, and the problems of its handlers with their files', () => {
    const result = {
      ...eventOf({ systemMessage: 'Hello.' }, { problem: 'odd', hint: 'rather so' }),
      problems: ['none'],
    }
    assert.deepEqual(textsOf(result), ['Hello.', 'none', 'PreToolUse hook: odd', 'PreToolUse hook: rather so'])
    const places = warningsOf(result, { event: 'Stop', input: {}, matched: [] }).map(({ definedAt }) => definedAt)
    assert.deepEqual(places, [undefined, undefined, 'settings.json: one.sh', 'settings.json: one.sh'])
  })
})
