import { AgentState } from '../../state/agent-state.ts'
import type { StopReason } from '../../state/continuation.ts'
import type { FinalRecord, FinalStatus, Step } from '../../state/execution.ts'
import type { OwnEvent } from '../../state/event.ts'
import type { JsonObject } from '../../state/json.ts'
import { List } from '../../state/list.ts'
import { toInput, type Message, type Part } from '../../state/message.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import { leaveRun } from '../../effects/effects.ts'
import type { RunEnd } from '../../effects/run-time.ts'
import { HookFailure, isFatal } from '../../hooks/run-hooks.ts'
import type { AgentParts } from '../agent-parts.ts'
import { pendingOf, toRun, type Run } from '../run.ts'
import { applyTransformsOrThrow, finishInvocation, fireTrigger, startInvocation } from './fire-trigger.ts'
import { askAt, hasQuestion } from './ask-at-trigger.ts'
import { runLoop } from './loop.ts'
import { pause } from './pause.ts'
import { reasonOf, type RunContext } from './run-context.ts'
import { cancelVote } from './cancel-vote.ts'
import { limitVote, withLeft } from './time-limit.ts'

/** The input as a message, redacted. */
export function inputFor({ redact }: AgentParts, input: string | Message): Message {
  const message = toInput(input)
  if (redact === undefined) return message
  const content = message.content.map((part) =>
    part.type === 'text' ? Object.freeze({ ...part, text: redact(part.text) as string }) : part,
  )
  return Object.freeze({ ...message, content: Object.freeze(content) })
}

/** onUserInput, then the loop. Resolves with a run whatever happens. */
export async function startRun(run: RunContext, input: Message): Promise<Run> {
  let final: FinalRecord | undefined
  run.childRuns = { start: startRun }
  run.effects.emit?.(inputEvent(run, input))
  noteCapabilities(run)
  try {
    const taken = await takeInput(run, input)
    if (taken === 'suspended') return await concludeRun(run, undefined)
    final = taken
    if (final === undefined) {
      emitStarted(run)
      run.checkpoint('started')
      await runLoop(run)
      final = run.execution.final
    } else {
      await run.background?.settleShadows()
      run.checkpoint('inputBlocked', final)
    }
  } catch (thrown) {
    final = brokenRecord(run, thrown)
  }
  return concludeRun(run, final)
}

function inputEvent({ now, turn }: RunContext, message: Message): OwnEvent {
  return { type: 'input', step: 0, at: now, message, ...(turn !== undefined && { turn }) }
}

/** Problems of capabilities, such as hooks of a file that do not run. Subagents have those of their parent. */
function noteCapabilities(run: RunContext): void {
  const { warnings } = run.parts
  if (warnings.length === 0 || run.parentLink !== undefined) return
  run.noteLoop('onUserInput', { warnings: warnings.map((message) => ({ code: 'LEFT_OUT', message })) })
}

function emitStarted({ effects, execution, state }: RunContext): void {
  const { id, startedAt } = execution
  effects.emit?.({ type: 'started', step: 0, at: startedAt, executionId: id, agentId: state.agentId })
}

/** The record of a run that an unexpected error ended: the run fails, the caller gets no exception. */
export function brokenRecord(run: RunContext, thrown: unknown): FinalRecord {
  const known = run.hasExecution ? run.execution.final : undefined
  if (known !== undefined && !isFatal(thrown)) return known // it had ended already
  run.failure ??= toAgentError(thrown, 'HOOK_FAILED')
  const { message } = run.failure
  const final = recordOf(run, { status: 'failed', reason: reasonOf(run.failure), by: 'hookloop', message })
  if (run.hasExecution) run.updateExecution({ status: 'failed', final })
  return final
}

/** The result of a run, once observers have finished and everything is stored. */
export async function concludeRun(run: RunContext, final: FinalRecord | undefined): Promise<Run> {
  const draining = run.background?.drainObservers()
  if (draining !== undefined) await draining
  if (run.shadows !== undefined) await run.background?.settleShadows()
  let record = final
  try {
    await run.effects.settle?.(endEvent(run, final))
  } catch (thrown) {
    record = unstoredRecord(run, thrown)
  }
  const leaving = leaveRun(run.effects)
  if (leaving !== undefined) await leaving
  return toResult(run, record)
}

/** The record of a run that cannot be stored. Its other end has not been reported yet. */
function unstoredRecord(run: RunContext, thrown: unknown): FinalRecord {
  run.failure = toAgentError(thrown, 'STORE_FAILED')
  const { message } = run.failure
  const final = recordOf(run, { status: 'failed', reason: 'persistenceFailed', by: 'store', message })
  if (run.hasExecution) run.updateExecution({ status: 'failed', final })
  return final
}

function toResult(run: RunContext, final: FinalRecord | undefined): Run {
  run.effects.time.close()
  const result = toRun(run, final)
  run.effects.emit?.(endEvent(run, final))
  return result
}

function endEvent(run: RunContext, final: FinalRecord | undefined): OwnEvent {
  const place = { step: run.lastStep, at: run.now }
  return final === undefined
    ? { type: 'suspended', ...place, executionId: run.execution.id, pending: pendingOf(run.state) }
    : { type: 'finished', ...place, record: final }
}

/** Throws STATE_SUSPENDED for a state that waits for answers or is paused. */
export function readyState(state: AgentState): AgentState {
  if (state.execution?.status !== 'suspended') return state
  const way =
    pendingOf(state).length === 0
      ? 'The run is paused and takes no new input. Use agent.resume(run) first.'
      : 'The state is suspended: it waits for answers, not for input. Use agent.resume(run, { answers }).'
  throw new AgentError('STATE_SUSPENDED', way)
}

/** The state that a run starts with: a new one, or that of an earlier run. */
export function stateFor(
  agent: { readonly instructions: string },
  given: {
    readonly from: AgentState | undefined
    readonly agentId: () => string
    readonly metadata: JsonObject | undefined
  },
): AgentState {
  const state = given.from ?? AgentState.create({ agentId: given.agentId() })
  let next = state.systemPrompt === '' ? state.withSystemPrompt(agent.instructions) : state
  for (const [key, value] of Object.entries(given.metadata ?? {})) next = next.withMetadata(key, value)
  return next
}

/** onUserInput: hooks rewrite or block the input. Then opens the execution; returns the final record if there is none. */
async function takeInput(run: RunContext, input: Message): Promise<FinalRecord | 'suspended' | undefined> {
  try {
    if (run.ended !== undefined) return endedRecord(run, run.ended)
    const plan = run.parts.stack.plan('onUserInput')
    if (plan.empty) {
      void fireTrigger(run, 'onUserInput', { input }) // for shadow hooks
      openExecution(run, input)
      return undefined
    }
    run.setDeadline()
    const invocation = startInvocation(run, plan, { input })
    await applyTransformsOrThrow(run, invocation)
    await finishInvocation(run, invocation)
    if (invocation.failure !== undefined) throw invocation.failure
    if (run.ended !== undefined) return endedRecord(run, run.ended)
    if (invocation.blocked !== undefined) {
      const { by, message } = invocation.blocked
      return recordOf(run, { status: 'stopped', reason: 'inputBlocked', by, message })
    }
    const before = run.state
    const taken = invocation.facts['input'] as Message
    openExecution(run, taken)
    if (!hasQuestion(run, invocation)) return undefined
    const asked = await askAt(run, invocation, 'onUserInput', { input: taken })
    if ('open' in asked) return (await pause(run, { phase: 'asked', ...asked.open })) ? 'suspended' : undefined
    if (asked.answer === 'allow') return undefined
    run.state = before
    run.hasExecution = false
    if (run.ended !== undefined) return endedRecord(run, run.ended)
    return recordOf(run, { status: 'stopped', reason: 'inputBlocked', by: 'approval', message: asked.answer.block })
  } catch (thrown) {
    if (thrown instanceof HookFailure && run.ended !== undefined) return endedRecord(run, run.ended)
    return inputFailed(run, thrown instanceof HookFailure ? thrown.error : toAgentError(thrown, 'HOOK_FAILED'))
  }
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
  return recordOf(run, { status: 'failed', reason: reasonOf(error), by: 'error at onUserInput', message })
}

function openExecution(run: RunContext, input: Message): void {
  const { state } = run
  run.hasExecution = true
  run.state = AgentState.patch(state, {
    messages: withoutOpenCalls(state.messages).append(input),
    spentBefore: state.usage,
    executionCount: state.executionCount + 1,
    execution: Object.freeze({
      id: run.effects.newId(),
      status: 'running',
      startedAt: run.now,
      waitedMs: Math.max(0, run.resumedAt - run.now), // of a subagent that is started again after a crash
      steps: List.empty<Step>(),
      votes: Object.freeze([]),
      usage: addUsage(noUsage, run.spentEarly),
      failures: 0,
      continuations: Object.freeze({ inRow: 0, total: 0 }),
      hooks: run.parts.stack.records,
    }),
  })
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

function recordOf(
  run: RunContext,
  record: { status: FinalStatus; reason: StopReason; by: string; message: string },
): FinalRecord {
  return Object.freeze({ ...record, votes: Object.freeze([]), at: run.now })
}
