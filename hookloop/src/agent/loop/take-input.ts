import { AgentState } from '../../state/agent-state.ts'
import type { StopReason } from '../../state/continuation.ts'
import type { FinalRecord, FinalStatus, Step } from '../../state/execution.ts'
import { List } from '../../state/list.ts'
import type { Message, Part } from '../../state/message.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { passes } from '../../effects/journal.ts'
import { cancelVote, limitVote, type RunEnd } from '../../effects/run-time.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { askAt } from '../context/ask.ts'
import { fireOrThrow, fireTrigger, hasQuestion } from '../context/fire-trigger.ts'
import type { RunContext } from '../context/run-context.ts'

/**
 * onUserInput: hooks rewrite or block the input. Then opens the execution. Returns the final record if there is none. An input
 * whose step has begun is not blocked any more.
 */
export async function takeInput(run: RunContext, input: Message): Promise<FinalRecord | undefined> {
  const { effects } = run
  const { hasBegun } = effects
  const before = run.state
  try {
    const ended = effects.ended()
    if (!hasBegun && ended !== undefined) return endedRecord(run, ended)
    run.setDeadline()
    const plan = run.parts.stack.plan('onUserInput')
    if (plan.empty) {
      await fireTrigger(run, 'onUserInput', { input }) // for shadow hooks
      openExecution(run, input)
      return undefined
    }
    const invocation = new Invocation(run, plan, run.state, { input })
    const blocked = await judgeInput(run, invocation)
    if (blocked !== undefined && !hasBegun) return blocked
    if (blocked !== undefined) run.noteOverridden('onUserInput', { by: blocked.by, decision: 'block' })
    openExecution(run, invocation.facts['input'] as Message)
    if (!hasQuestion(invocation)) return undefined
    const subject = { input: invocation.facts['input'] as Message }
    const denied = await askAt(run, invocation, { at: 'onUserInput', subject, hasBegun })
    const end = hasBegun ? undefined : effects.ended()
    if (denied === undefined && end === undefined) return undefined
    if (hasBegun) {
      run.noteOverridden('onUserInput', { by: 'approval', decision: 'block' })
      return undefined
    }
    run.state = before
    run.hasExecution = false
    if (end !== undefined) return endedRecord(run, end)
    return recordOf(run, { status: 'stopped', reason: 'inputBlocked', by: 'approval', message: denied!.block })
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    const end = effects.ended()
    if (end !== undefined && !hasBegun) return endedRecord(run, end)
    const error = toAgentError(thrown, 'HOOK_FAILED')
    if (!hasBegun) return inputFailed(run, error)
    if (!run.hasExecution) openExecution(run, input)
    run.fail(error, 'onUserInput') // a vote: what has begun is finished first
    return undefined
  }
}

/** How the run ends if hooks do not let the input pass. */
async function judgeInput(run: RunContext, invocation: Invocation): Promise<FinalRecord | undefined> {
  await fireOrThrow(run, invocation)
  if (invocation.failure !== undefined) throw invocation.failure
  const end = run.effects.ended()
  if (end !== undefined) return endedRecord(run, end)
  if (invocation.blocked === undefined) return undefined
  const { by, message } = invocation.blocked
  return recordOf(run, { status: 'stopped', reason: 'inputBlocked', by, message })
}

function endedRecord(run: RunContext, end: RunEnd): FinalRecord {
  if (end === 'limit') {
    const { source, message } = limitVote(run.effects.time, run.now)
    return recordOf(run, { status: 'stopped', reason: 'timeLimit', by: source, message: withLeft(run.left, message) })
  }
  const { source, message, value } = cancelVote(run.effects.time.stopRequest())
  const record = recordOf(run, { status: 'cancelled', reason: 'userRequested', by: source, message })
  return value === undefined ? record : Object.freeze({ ...record, value })
}

/** A hook at onUserInput failed: the run has failed, without an execution. */
function inputFailed(run: RunContext, error: AgentError): FinalRecord {
  const { code, message } = error
  run.failure = error
  run.effects.emit?.({ type: 'error', step: 0, at: run.now, error: { code, message, during: 'onUserInput' } })
  return recordOf(run, { status: 'failed', reason: 'errorForbade', by: 'error at onUserInput', message })
}

function openExecution(run: RunContext, input: Message): void {
  const { state } = run
  const id = run.effects.newId()
  run.hasExecution = true
  run.state = AgentState.patch(state, {
    messages: withoutOpenCalls(AgentState.fieldsOf(state).messages).append(input),
    spentBefore: state.usage,
    executionCount: state.executionCount + 1,
    execution: Object.freeze({
      id,
      status: 'running',
      startedAt: run.now,
      waitedMs: 0,
      steps: List.from<Step>([]),
      votes: Object.freeze([]),
      usage: addUsage(noUsage, run.spentEarly),
      failures: 0,
      continuations: Object.freeze({ inRow: 0, total: 0 }),
      hooks: run.parts.stack.records,
    }),
  })
  run.setDeadline()
  run.effects.emit?.({ type: 'started', step: 0, at: run.now, executionId: id, agentId: state.agentId })
}

/** Adds results for the calls of a conversation that was interrupted: models reject calls without results. */
function withoutOpenCalls(messages: List<Message>): List<Message> {
  const last = messages.at(-1)
  const calls = last?.role === 'assistant' ? last.content.filter((part) => part.type === 'tool-call') : []
  if (calls.length === 0) return messages
  const content = calls.map(({ toolCallId, toolName }): Part => {
    const output = 'The run was interrupted before the result of this call was known. It may have had an effect.'
    return Object.freeze({ type: 'tool-result', toolCallId, toolName, output, isError: true })
  })
  return messages.append(Object.freeze({ role: 'tool', content: Object.freeze(content) }))
}

/** The message of a final record, with the work that may still be running. */
export function withLeft(left: readonly string[], message: string): string {
  return left.length === 0 ? message : `${message} Left behind: ${left.join(', ')}.`
}

export function recordOf(
  run: RunContext,
  record: { status: FinalStatus; reason: StopReason; by: string; message: string },
): FinalRecord {
  return Object.freeze({ ...record, votes: Object.freeze([]), at: run.now })
}
