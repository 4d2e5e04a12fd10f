import { AgentState } from '../data/agent-state.ts'
import type { StopReason } from '../data/continuation.ts'
import type { FinalRecord, FinalStatus, Step } from '../data/execution.ts'
import type { JsonObject } from '../data/json.ts'
import { List } from '../data/list.ts'
import type { Message, Part } from '../data/message.ts'
import { noUsage } from '../data/usage.ts'
import { AgentError, messageOf, toAgentError } from '../errors.ts'
import { Firing } from '../hooks/firing.ts'
import { HookFailure } from '../hooks/run-hooks.ts'
import type { LiveRun } from './live-run.ts'
import { runLoop } from './loop.ts'
import { toRun, type Run } from './run.ts'

/** onUserInput, then the loop. Whatever happens, it resolves with a run. */
export async function beginRun(run: LiveRun, input: Message): Promise<Run> {
  return settled(run, async () => {
    const refused = await takeInput(run, input)
    if (refused !== undefined) return refused
    run.effects.emit?.({
      type: 'started',
      executionId: run.execution.id,
      agentId: run.state.agentId,
      at: run.execution.startedAt,
    })
    await runLoop(run)
    return run.execution.final
  })
}

/** Turns whatever is left of a run into its result, once. A defect of our own is a failed run, not a crash. */
export async function settled(run: LiveRun, work: () => Promise<FinalRecord | undefined>): Promise<Run> {
  let final: FinalRecord | undefined
  try {
    final = await work()
  } catch (thrown) {
    run.failure ??= toAgentError(thrown, 'HOOK_FAILED')
    final = recordOf(run, { status: 'failed', reason: 'errorForbade', by: 'hookloop', message: run.failure.message })
    if (run.state.execution !== undefined) run.updateExecution({ status: 'failed', final })
  }
  await run.outstanding.drain()
  run.outstanding.release()
  const result = toRun(run, final)
  if (result.status === 'suspended') {
    run.effects.emit?.({ type: 'suspended', executionId: run.execution.id, pending: result.pending })
  } else {
    run.effects.emit?.({ type: 'finished', record: result.final })
  }
  return result
}

/** The state a conversation begins with, or goes on with. */
export function stateFor(
  run: { readonly agentId: string; readonly instructions: string },
  from: { readonly state?: AgentState | undefined; readonly metadata?: JsonObject | undefined },
): AgentState {
  const state = from.state ?? AgentState.create({ agentId: run.agentId })
  if (state.execution?.status === 'suspended') {
    throw new AgentError(
      'STATE_SUSPENDED',
      'The state is suspended: it waits for answers, not for input. Go on with agent.resume(run, { answers }).',
    )
  }
  let next = state.systemPrompt === '' ? state.withSystemPrompt(run.instructions) : state
  for (const [key, value] of Object.entries(from.metadata ?? {})) next = next.withMetadata(key, value)
  return next
}

/** Lets hooks rewrite or refuse the input, then opens the execution. Gives the final record of a refusal. */
async function takeInput(run: LiveRun, input: Message): Promise<FinalRecord | undefined> {
  const plan = run.parts.stack.plan('onUserInput')
  const firing = new Firing(run, plan, run.state, { input })
  try {
    await run.transformOrThrow(firing, plan)
  } catch (thrown) {
    const error = thrown instanceof HookFailure ? thrown.error : toAgentError(thrown, 'HOOK_FAILED')
    run.failure = error
    run.effects.emit?.({ type: 'error', error: { code: error.code, message: messageOf(error), during: 'onUserInput' } })
    return recordOf(run, {
      status: 'failed',
      reason: 'errorForbade',
      by: 'error at onUserInput',
      message: error.message,
    })
  }
  await run.judge(firing, plan)
  if (firing.blocked !== undefined) {
    const { by, message } = firing.blocked
    return recordOf(run, { status: 'stopped', reason: 'inputBlocked', by, message })
  }
  if (run.effects.cancelled()) {
    return recordOf(run, {
      status: 'cancelled',
      reason: 'userRequested',
      by: 'signal',
      message: 'The run was cancelled.',
    })
  }
  openExecution(run, firing.facts['input'] as Message)
  return undefined
}

function openExecution(run: LiveRun, input: Message): void {
  const { state } = run
  run.state = AgentState.patch(state, {
    messages: withoutOpenCalls(state.messages).append(input),
    spentBefore: state.usage,
    executionCount: state.executionCount + 1,
    execution: Object.freeze({
      id: run.effects.newId(),
      status: 'running',
      startedAt: run.now,
      waitedMs: 0,
      steps: List.empty<Step>(),
      votes: Object.freeze([]),
      usage: noUsage,
      failures: 0,
      continuations: Object.freeze({ inRow: 0, total: 0 }),
      hooks: run.parts.stack.records(),
    }),
  })
}

/** A conversation that was cut off among its calls gets results for them, or no model would take it. */
function withoutOpenCalls(messages: List<Message>): List<Message> {
  const last = messages.at(-1)
  const calls = last?.role === 'assistant' ? last.content.filter((part) => part.type === 'tool-call') : []
  if (calls.length === 0) return messages
  const content = calls.map(({ toolCallId, toolName }): Part => {
    const output = 'The run was cut off before the result of this call was known. It may have had an effect.'
    return Object.freeze({ type: 'tool-result', toolCallId, toolName, output, isError: true })
  })
  return messages.append(Object.freeze({ role: 'tool', content: Object.freeze(content) }))
}

function recordOf(
  run: LiveRun,
  record: { status: FinalStatus; reason: StopReason; by: string; message: string },
): FinalRecord {
  return Object.freeze({ ...record, votes: Object.freeze([]), at: run.now })
}
