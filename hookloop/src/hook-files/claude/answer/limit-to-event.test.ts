import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { suite, test } from 'node:test'
import type { Json, JsonObject } from '../../../values/json.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { Payload } from '../events/common-payload.ts'
import type { HandlerAnswer } from './handler-answer.ts'
import { limitToEvent } from './limit-to-event.ts'

const at = (event: ClaudeEvent, input: JsonObject = {}): Payload => ({ event, input, matched: [] })
const after = (tool_name: string, tool_response: Json) => at('PostToolUse', { tool_name, tool_response })

suite('updatedToolOutput of a Claude Code hook', () => {
  const object = { a: 'text', list: [1], nothing: null }
  const cases: readonly (readonly [what: string, before: Json, given: Json, isUsed: boolean])[] = [
    ['a text for a text', 'before', 'after', true],
    ['an object for a text', 'before', { a: 1 }, false],
    ['a list for an object', object, ['a'], false],
    ['a list for a list', [1], ['a'], true],
    ['a text for null', null, 'after', true],
    ['an object with the same kinds', object, { a: 'other', list: [] }, true],
    ['an object with a further field', object, { more: 1 }, true],
    ['an object with a value where there was null', object, { nothing: 1 }, true],
    ['an object with null where there was a value', object, { a: null }, true],
    ['an object with another kind of value', object, { a: 1 }, false],
    ['an object with a list where there was an object', { a: {} }, { a: [] }, false],
    ['an object with an object where there was a list', { a: 'x', b: [] }, { a: 'y', b: {} }, false],
  ]
  for (const [what, before, given, isUsed] of cases) {
    test(`is ${isUsed ? 'used' : 'ignored with a problem'}: ${what}`, () => {
      const { updatedOutput, problem } = limitToEvent({ updatedOutput: given }, after('Bash', before))
      assert.deepEqual([updatedOutput, problem !== undefined], isUsed ? [given, false] : [undefined, true])
    })
  }

  test('may have any shape for an MCP tool, also under its older name, which has no effect elsewhere', () => {
    const older: HandlerAnswer = { other: { updatedMCPToolOutput: { a: 1 }, title: 'b' } }
    assert.deepEqual(limitToEvent({ updatedOutput: { a: 1 } }, after('mcp__x__y', 'text')), { updatedOutput: { a: 1 } })
    assert.deepEqual(limitToEvent(older, after('mcp__x__y', 'text')), {
      updatedOutput: { a: 1 },
      other: { title: 'b' },
    })
    assert.deepEqual(limitToEvent(older, after('Bash', 'text')), { other: { title: 'b' } })
    const both: HandlerAnswer = { updatedOutput: 'new', other: { updatedMCPToolOutput: 'old' } }
    assert.deepEqual(limitToEvent(both, after('mcp__x__y', 'text')), { updatedOutput: 'new' })
  })
})

suite('a block by a Claude Code hook', () => {
  const block = { reason: 'No.' } as const

  test('blocks where something can be blocked', () => {
    assert.deepEqual(limitToEvent({ block }, at('PreToolUse')), { block })
    assert.deepEqual(limitToEvent({ block }, at('ConfigChange', { source: 'user_settings' })), { block })
  })

  test('is ignored for settings of an organization', () => {
    assert.deepEqual(limitToEvent({ block }, at('ConfigChange', { source: 'policy_settings' })), {})
  })

  test('is a warning, before other problems, where nothing can be blocked', () => {
    assert.deepEqual(limitToEvent({ block }, at('SessionEnd')), { problem: 'No.' })
    assert.deepEqual(limitToEvent({ block, problem: 'More.' }, at('SessionEnd')), { problem: 'No.\nMore.' })
    assert.deepEqual(limitToEvent({ block: { ...block, reason: '' } }, at('SessionEnd')), {})
  })
})

suite('a long text of a Claude Code hook', () => {
  const long = `${'x'.repeat(1_999)}😀${'y'.repeat(10_000)}`
  const pre = at('PreToolUse')
  const pathIn = (text: string): string => /complete text is in (.*)\]$/.exec(text)![1]!

  test('is complete up to 10,000 characters', () => {
    assert.equal(limitToEvent({ context: 'x'.repeat(10_000) }, pre).context?.length, 10_000)
    assert.match(
      limitToEvent({ context: 'x'.repeat(10_001) }, pre).context!,
      /\[These are the first 2000 of 10001 characters/,
    )
  })

  test('is shortened between characters, and is complete in a file that only the user can read', () => {
    const { context } = limitToEvent({ context: long }, pre)
    assert.ok(context!.startsWith(`${'x'.repeat(1_999)}\n[These are the first 1999 of ${long.length} characters.`))
    assert.equal(readFileSync(pathIn(context!), 'utf8'), long)
    assert.equal(statSync(pathIn(context!)).mode & 0o777, 0o600)
  })

  const answers: readonly HandlerAnswer[] = [
    { systemMessage: long },
    { problem: long },
    { block: { reason: long } },
    { permission: { decision: 'ask', reason: long } },
    { stop: { reason: long } },
    { request: { behavior: 'deny', message: long, interrupt: true } },
    { other: { initialUserMessage: long, title: 'kept' } },
  ]
  for (const answer of answers) {
    test(`is shortened wherever the model or the user gets it: ${Object.keys(answer)[0]}`, () => {
      const limited = JSON.stringify(limitToEvent(answer, pre))
      assert.deepEqual([limited.includes('The complete text is in'), limited.length < 3_000], [true, true])
      assert.deepEqual(Object.keys(JSON.parse(limited) as object), Object.keys(answer))
      if ('other' in answer) assert.match(limited, /"title":"kept"/)
    })
  }
})
