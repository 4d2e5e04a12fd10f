import { AgentState } from '../state/agent-state.ts'
import type { ContinuationOutcome } from '../state/continuation.ts'
import type { Step } from '../state/execution.ts'
import { List } from '../state/list.ts'
import type { Message, Part } from '../state/message.ts'
import { addUsage, noUsage } from '../state/usage.ts'
import { passes } from '../effects/journal.ts'
import { toAgentError } from '../../errors.ts'
import { isFatal } from '../hooks/run-hooks.ts'
import { askAt } from '../context/ask.ts'
import { fireTrigger, hasQuestion } from '../context/fire-trigger.ts'
import type { RunContext } from '../context/run-context.ts'

/**
 * onUserInput: hooks rewrite or block the input. Returns the votes against a run whose input is not taken. An input whose step has
 * begun is not blocked any more.
 */
export async function takeInput(run: RunContext, input: Message): Promise<ContinuationOutcome | undefined> {
  const { hasBegun } = run.effects.scopeLog
  const before = run.state
  let judged: AgentState | undefined // the state without the input
  const add = (message: Message): void => {
    judged = run.state
    const messages = withoutOpenCalls(AgentState.fieldsOf(judged).messages).append(message)
    const executionCount = before.executionCount + 1
    run.state = AgentState.patch(judged, { messages, executionCount, spentBefore: before.usage })
  }
  // New input, and the end of the run above, only end a run whose input is taken.
  const isRefused = (): boolean => (run.checkEnd() !== undefined || run.forbidden !== undefined) && !hasBegun
  openExecution(run)
  try {
    const fired = isRefused() ? undefined : await fireTrigger(run, 'onUserInput', { input }, { state: before })
    const message = fired === undefined ? input : (fired.facts['input'] as Message)
    if (fired?.blocked !== undefined) blockInput(run, fired.blocked)
    add(message)
    if (hasQuestion(fired) && !isRefused()) {
      const refused = await askAt(run, fired, { at: 'onUserInput', subject: { input: message }, hasBegun })
      if (refused !== undefined) blockInput(run, { by: 'approval', message: refused.block })
    }
  } catch (thrown) {
    if (passes(thrown)) {
      run.load(before, false)
      throw thrown
    }
    if (!isRefused()) failInput(run, thrown)
  }
  if (isRefused()) {
    const outcome = run.count()
    dropExecution(run, judged ?? run.state, before)
    return outcome
  }
  if (judged === undefined) add(input)
  const { id } = run.execution
  run.effects.emit?.({ type: 'started', step: 0, at: run.now, executionId: id, agentId: run.state.agentId })
  return undefined
}

/** The state of a run that has no execution. What was spent was spent all the same. */
function dropExecution(run: RunContext, state: AgentState, before: AgentState): void {
  const { execution, spentBefore } = AgentState.fieldsOf(before)
  const spent = addUsage(spentBefore, run.execution.usage)
  run.load(AgentState.create({ ...AgentState.fieldsOf(state), execution, spentBefore: spent }), false)
}

/** A block, of a guard or of an approver, is a vote. */
function blockInput(run: RunContext, { by, message }: { readonly by: string; readonly message: string }): void {
  if (run.effects.scopeLog.hasBegun) return run.noteOverridden('onUserInput', { by, decision: 'block' })
  run.cast([Object.freeze({ decision: 'forbidContinuation', reason: 'inputBlocked', message, source: by })])
}

function failInput(run: RunContext, thrown: unknown): void {
  const error = toAgentError(thrown, 'HOOK_FAILED')
  if (!isFatal(error)) run.recordError(error, 'onUserInput')
  run.fail(error, 'onUserInput')
}

/** Opens the execution. Hooks see it when the input is taken. */
function openExecution(run: RunContext): void {
  run.execution = {
    id: run.effects.newId(),
    status: 'running',
    startedAt: run.now,
    waitedMs: 0,
    steps: List.from<Step>([]),
    votes: Object.freeze([]),
    usage: addUsage(noUsage, run.spentEarly),
    failures: 0,
    continuations: Object.freeze({ inRow: 0, total: 0 }),
    hooks: run.parts.plans.records,
  }
  run.setDeadline()
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
