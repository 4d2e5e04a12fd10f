import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { BaseContext } from '../../../core/hooks/base-context.ts'
import { hook } from '../../../core/hooks/hook.ts'
import type { HookOutcome } from '../../../core/hooks/outcome.ts'
import { AgentState } from '../../../core/state/agent-state.ts'
import type { Json, JsonObject } from '../../../values/json.ts'
import { textOf } from '../../../core/state/message.ts'
import { fire } from '../../../testing/fire.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { MergedAnswer } from './merge-answers.ts'
import { toHookOutcome } from './to-hook-outcome.ts'

type Given = {
  readonly merged?: Partial<MergedAnswer>
  readonly input?: JsonObject
  readonly args?: Json
  readonly metadata?: JsonObject
}

const toolCall = { id: 'c', name: 'work', args: { prompt: 'Look.' } }

/** What merged answers at an event become. The context is one of a real hook. */
async function outcomeOf(event: ClaudeEvent, { merged, input = {}, args, metadata = {} }: Given): Promise<HookOutcome> {
  let outcome: HookOutcome = {}
  const payload = { event, input, matched: [] }
  const reads = hook('beforeToolUse', (ctx) => {
    const answer = { decision: 'none', reason: '', ...merged } as const
    const how = { merged: answer, ...(args !== undefined && { args }) }
    outcome = toHookOutcome(ctx as unknown as BaseContext, payload, how)
    return ctx
  })
  await fire(reads, 'beforeToolUse', { toolCall, state: AgentState.create({ agentId: 'a', metadata }) })
  return outcome
}

/** The texts that are added to the conversation, as messages of the user. */
const textsIn = ({ state }: HookOutcome): readonly string[] =>
  (state?.appended ?? []).map(({ role, content }) => {
    assert.equal(role, 'user')
    return textOf(content)
  })

suite('a Claude Code hook at PreToolUse', () => {
  test('changes the arguments, unless it denies the call', async () => {
    const updatedInput = { prompt: 'Do not look.' }
    assert.deepEqual((await outcomeOf('PreToolUse', { merged: { updatedInput } })).args, updatedInput)
    const denied = await outcomeOf('PreToolUse', { merged: { decision: 'deny', reason: 'No.', updatedInput } })
    assert.deepEqual([denied.decision, denied.args], ['block', undefined])
  })
})

suite('a Claude Code hook at PostToolUse', () => {
  test('changes the output', async () => {
    assert.deepEqual(await outcomeOf('PostToolUse', { merged: { updatedOutput: 'New.' } }), { output: 'New.' })
  })

  test('gives the model its feedback and context', async () => {
    const merged = { decision: 'block', reason: 'Wrong.', additionalContext: 'It rains.' } as const
    const outcome = await outcomeOf('PostToolUse', { merged, input: { tool_name: 'Work' } })
    const [feedback, context] = textsIn(outcome)
    assert.equal(feedback, 'PostToolUse:Work hook feedback:\nWrong.')
    assert.match(context!, /It rains\./)
  })
})

suite('a Claude Code hook at other events', () => {
  test('lets the model try a denied call again', async () => {
    const merged = { other: { retry: true } }
    assert.match(textsIn(await outcomeOf('PermissionDenied', { merged })).join(), /You may try it again once/)
    assert.deepEqual(await outcomeOf('PermissionDenied', { merged: { other: { retry: false } } }), {})
  })
})
