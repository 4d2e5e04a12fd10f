import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { BaseContext, Mode } from '../../../hooks/base-context.ts'
import { hook } from '../../../hooks/hook.ts'
import type { HookOutcome } from '../../../hooks/outcome.ts'
import { AgentState, ENVIRONMENT_KEY, TITLE_KEY } from '../../../state/agent-state.ts'
import type { Json, JsonObject } from '../../../values/json.ts'
import { textOf } from '../../../state/message.ts'
import { noTokens } from '../../../state/usage.ts'
import { getSessionVariables, setSessionVariables } from '../../../system/processes/session-variables.ts'
import { fire } from '../../../testing/fire.ts'
import type { ClaudeEvent } from '../events/claude-events.ts'
import type { MergedAnswer } from './merge-answers.ts'
import { mergeOutcomes, toHookOutcome } from './to-hook-outcome.ts'

type Given = {
  readonly merged?: Partial<MergedAnswer>
  readonly mode?: Mode
  readonly input?: JsonObject
  readonly args?: Json
  readonly metadata?: JsonObject
}

const toolCall = { id: 'c', name: 'work', args: { prompt: 'Look.' } }

/** What merged answers at an event become. The context is one of a real hook. */
async function outcomeOf(
  event: ClaudeEvent,
  { merged, mode, input = {}, args, metadata = {} }: Given,
): Promise<HookOutcome> {
  let outcome: HookOutcome = {}
  const payload = { event, input, matched: [] }
  const reads = hook('beforeToolUse', (ctx) => {
    const answer = { decision: 'none', reason: '', ...merged } as const
    const how = { merged: answer, ...(mode !== undefined && { mode }), ...(args !== undefined && { args }) }
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
const stopped = { decision: 'forbidContinuation', reason: 'stopRequested' } as const

suite('a Claude Code hook at UserPromptSubmit', () => {
  for (const event of ['UserPromptSubmit', 'UserPromptExpansion'] as const) {
    test(`blocks the input with its reason, or with one of ours: ${event}`, async () => {
      assert.deepEqual(await outcomeOf(event, { merged: { decision: 'block', reason: 'No.' } }), {
        decision: 'block',
        message: 'No.',
      })
      const { message } = await outcomeOf(event, { merged: { decision: 'block' } })
      assert.equal(message, `A hook at ${event} blocked it without a reason.`)
    })
  }

  test('adds context, and sets a title', async () => {
    const merged = { decision: 'context', additionalContext: 'It rains.', other: { sessionTitle: 'Rain' } } as const
    const outcome = await outcomeOf('UserPromptSubmit', { merged })
    assert.match(textsIn(outcome).join(), /It rains\./)
    assert.deepEqual(outcome.state?.metadata, { [TITLE_KEY]: 'Rain' })
    assert.deepEqual(await outcomeOf('UserPromptSubmit', { merged: { other: { sessionTitle: ' ' } } }), {})
    assert.deepEqual(await outcomeOf('UserPromptSubmit', {}), {})
  })
})

suite('a Claude Code hook at PreToolUse', () => {
  const input = { tool_name: 'Work' }
  const cases = {
    deny: { decision: 'block', message: 'PreToolUse:Work hook error: Why.' },
    ask: { decision: 'ask', message: 'Why.' },
    defer: { decision: 'ask', message: 'Why.' },
    allow: { decision: 'allow', message: 'Why.' },
    none: {},
  } as const
  for (const mode of ['transform', 'guard'] as const) {
    for (const [decision, expected] of Object.entries(cases)) {
      test(`decides ${decision} as a ${mode}`, async () => {
        const merged = { decision: decision as 'deny', reason: 'Why.' }
        assert.deepEqual(await outcomeOf('PreToolUse', { merged, mode, input }), expected)
      })
    }
  }

  test('changes the arguments, unless it denies the call', async () => {
    const updatedInput = { prompt: 'Do not look.' }
    assert.deepEqual((await outcomeOf('PreToolUse', { merged: { updatedInput } })).args, updatedInput)
    const denied = await outcomeOf('PreToolUse', { merged: { decision: 'deny', reason: 'No.', updatedInput } })
    assert.deepEqual([denied.decision, denied.args], ['block', undefined])
  })

  test('blocks a call inside a subagent that it would change', async () => {
    const merged = { decision: 'allow', reason: 'Fine.', updatedInput: { prompt: 'x' } } as const
    const outcome = await outcomeOf('PreToolUse', { merged, mode: 'guard' })
    assert.deepEqual(outcome, {
      decision: 'block',
      message: 'PreToolUse hook error: a hook changed its arguments, which is not possible inside a subagent',
    })
    const denied = await outcomeOf('PreToolUse', { merged: { ...merged, decision: 'deny' }, mode: 'guard' })
    assert.match(denied.message!, /Fine\./)
  })

  test('stops the run, and the call is judged by what else was decided', async () => {
    const alsoDecided = { decision: 'deny', reason: 'No.' } as const
    for (const mode of ['transform', 'guard'] as const) {
      const outcome = await outcomeOf('PreToolUse', {
        merged: { decision: 'stop', reason: 'Over.', alsoDecided },
        mode,
      })
      assert.deepEqual(outcome, {
        decision: 'block',
        message: 'PreToolUse hook error: No.',
        votes: [{ ...stopped, message: 'Over.\nNo.' }],
      })
    }
    const only = await outcomeOf('PreToolUse', { merged: { decision: 'stop', reason: '' } })
    assert.deepEqual(only, { votes: [{ ...stopped, message: 'A hook at PreToolUse ended the run.' }] })
  })
})

suite('a Claude Code hook at PostToolUse', () => {
  test('changes the output, and inside a subagent withholds what it would change', async () => {
    assert.deepEqual(await outcomeOf('PostToolUse', { merged: { updatedOutput: 'New.' } }), { output: 'New.' })
    assert.deepEqual(await outcomeOf('PostToolUse', { merged: { updatedOutput: 'New.' }, mode: 'guard' }), {
      decision: 'block',
      message: 'a hook changed its output, which is not possible inside a subagent',
    })
  })

  test('gives the model its feedback and context, but not inside a subagent', async () => {
    const merged = { decision: 'block', reason: 'Wrong.', additionalContext: 'It rains.' } as const
    const outcome = await outcomeOf('PostToolUse', { merged, input: { tool_name: 'Work' } })
    const [feedback, context] = textsIn(outcome)
    assert.equal(feedback, 'PostToolUse:Work hook feedback:\nWrong.')
    assert.match(context!, /It rains\./)
    assert.deepEqual(await outcomeOf('PostToolUse', { merged, mode: 'guard' }), {})
  })

  test('gives feedback and stops the run', async () => {
    const alsoDecided = { decision: 'block', reason: 'Wrong.' } as const
    const outcome = await outcomeOf('PostToolUse', { merged: { decision: 'stop', reason: 'Over.', alsoDecided } })
    assert.deepEqual(textsIn(outcome), ['PostToolUse hook feedback:\nWrong.'])
    assert.deepEqual(outcome.votes, [{ ...stopped, message: 'Over.\nWrong.' }])
    const denied = { decision: 'deny', reason: 'Wrong.' } as const
    const other = await outcomeOf('PostToolUse', { merged: { decision: 'stop', reason: 'Over.', alsoDecided: denied } })
    assert.deepEqual(textsIn(other), [])
  })
})

suite('a Claude Code hook at the end of a step, a turn or a subagent', () => {
  test('ends the run at PostToolBatch with a block or a stop, and adds context', async () => {
    for (const decision of ['block', 'stop'] as const) {
      const outcome = await outcomeOf('PostToolBatch', { merged: { decision, reason: 'Over.' } })
      assert.deepEqual(outcome, { votes: [{ ...stopped, message: 'Over.' }] })
    }
    const context = await outcomeOf('PostToolBatch', {
      merged: { decision: 'context', additionalContext: 'It rains.' },
    })
    assert.deepEqual([context.votes, textsIn(context).length], [undefined, 1])
  })

  for (const event of ['Stop', 'SubagentStop'] as const) {
    const messageOf = ({ votes }: HookOutcome) => votes?.map(({ decision, message }) => [decision, message])
    const requested = (text: string) => [['requestContinuation', `${event} hook feedback:\n${text}`]]
    test(`requests a continuation with its text: ${event}`, async () => {
      const at = (merged: Partial<MergedAnswer>) => outcomeOf(event, { merged }).then(messageOf)
      assert.deepEqual(await at({ decision: 'block', reason: 'More.' }), requested('More.'))
      assert.deepEqual(await at({ decision: 'block' }), requested('The task is not finished.'))
      assert.deepEqual(await at({ decision: 'context', additionalContext: 'It rains.' }), requested('It rains.'))
      const both = { decision: 'block', reason: 'More.', additionalContext: 'It rains.' } as const
      assert.deepEqual(await at(both), requested('More.\nIt rains.'))
      assert.deepEqual(await outcomeOf(event, { merged: { reason: 'unused' } }), {})
      assert.deepEqual(await outcomeOf(event, { merged: { decision: 'stop', reason: 'Over.' } }), {})
    })
  }
})

suite('a Claude Code hook at other events', () => {
  test('blocks a compaction and a task', async () => {
    const merged = { decision: 'block', reason: 'No.' } as const
    assert.deepEqual(await outcomeOf('PreCompact', { merged }), { decision: 'block', message: 'No.' })
    assert.deepEqual(await outcomeOf('PreCompact', { merged: { decision: 'context' } }), {})
    for (const event of ['TaskCreated', 'TaskCompleted'] as const) {
      const message = `${event} hook error: No.`
      assert.deepEqual(await outcomeOf(event, { merged }), { decision: 'block', message })
      assert.deepEqual(await outcomeOf(event, { merged: { decision: 'allow' } }), {})
    }
    assert.deepEqual(await outcomeOf('Notification', { merged }), {})
  })

  test('lets the model try a denied call again, but not inside a subagent', async () => {
    const merged = { other: { retry: true } }
    assert.match(textsIn(await outcomeOf('PermissionDenied', { merged })).join(), /You may try it again once/)
    assert.deepEqual(await outcomeOf('PermissionDenied', { merged, mode: 'guard' }), {})
    assert.deepEqual(await outcomeOf('PermissionDenied', { merged: { other: { retry: false } } }), {})
  })

  test('adds context to the prompt of a subagent', async () => {
    const merged = { additionalContext: 'It rains.' }
    const promptOf = async (given: Given) =>
      ((await outcomeOf('SubagentStart', { merged, ...given })).args as { prompt?: string } | undefined)?.prompt
    assert.match((await promptOf({}))!, /^Look\.\n\n[^]*It rains\./)
    assert.match((await promptOf({ args: { prompt: 'Listen.' } }))!, /^Listen\.\n\n/)
    for (const given of [{ mode: 'guard' as const }, { args: 'text' }, { args: { prompt: 1 } }, { merged: {} }])
      assert.deepEqual(await outcomeOf('SubagentStart', { merged, ...given }), {})
  })

  test('starts a session with context, a first message, variables and a title', async () => {
    const environment = { COLOR: 'red', NUMBER: 1 }
    const other = { initialUserMessage: 'Begin.', environment, sessionTitle: 'Rain' }
    const metadata = { [ENVIRONMENT_KEY]: setSessionVariables({ SIZE: 'big', COLOR: 'blue' }) }
    const given = { merged: { additionalContext: 'It rains.', other }, metadata }
    const outcome = await outcomeOf('SessionStart', { ...given, input: { source: 'startup' } })
    assert.deepEqual([textsIn(outcome).length, textsIn(outcome)[1]], [2, 'Begin.'])
    const set = outcome.state!.metadata!
    assert.deepEqual(getSessionVariables(set[ENVIRONMENT_KEY]), { SIZE: 'big', COLOR: 'red' })
    assert.equal(set[TITLE_KEY], 'Rain')
    const resumed = await outcomeOf('SessionStart', { ...given, input: { source: 'resume' } })
    assert.deepEqual([textsIn(resumed).length, resumed.state!.metadata![TITLE_KEY]], [1, 'Rain'])
    const cleared = await outcomeOf('SessionStart', { ...given, input: { source: 'clear' } })
    assert.equal(TITLE_KEY in cleared.state!.metadata!, false)
    assert.deepEqual(await outcomeOf('Setup', {}), {})
    assert.match(textsIn(await outcomeOf('Setup', { merged: { additionalContext: 'Rain.' } })).join(), /Rain\./)
  })
})

suite('two Claude Code events of one trigger', () => {
  const message = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] }) as const

  test('add up what they change, vote, warn and spend', () => {
    const variables = (values: Record<string, string>) => ({ [ENVIRONMENT_KEY]: setSessionVariables(values) })
    const vote = (text: string) => ({ ...stopped, message: text })
    const warning = (text: string) => ({ code: 'ACTION_WARNING', message: text }) as const
    const spent = (inputTokens: number) => ({ ...noTokens, inputTokens })
    const merged = mergeOutcomes(
      {
        decision: 'allow',
        state: { appended: [message('a')], metadata: { x: 1, ...variables({ A: '1', B: '1' }) } },
        votes: [vote('a')],
        warnings: [warning('a')],
        spent: spent(1),
      },
      {
        decision: 'block',
        state: { appended: [message('b')], metadata: { y: 2, ...variables({ B: '2' }) } },
        votes: [vote('b')],
        warnings: [warning('b')],
        spent: spent(2),
      },
    )
    const { [ENVIRONMENT_KEY]: id, ...metadata } = merged.state!.metadata!
    assert.deepEqual(
      [textsIn(merged), metadata, getSessionVariables(id)],
      [['a', 'b'], { x: 1, y: 2 }, { A: '1', B: '2' }],
    )
    assert.deepEqual([merged.decision, merged.votes?.length, merged.warnings?.length], ['block', 2, 2])
    assert.equal(merged.spent?.inputTokens, 3)
  })
})
