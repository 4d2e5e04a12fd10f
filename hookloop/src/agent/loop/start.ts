import { AgentState } from '../../state/agent-state.ts'
import type { StopReason } from '../../state/continuation.ts'
import type { FinalRecord, FinalStatus, Step } from '../../state/execution.ts'
import type { JsonObject } from '../../state/json.ts'
import { List } from '../../state/list.ts'
import { toInput, type Message, type Part } from '../../state/message.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { HookFailure } from '../../hooks/run-hooks.ts'
import type { Plan } from '../../hooks/stack.ts'
import type { RunContext } from './run-context.ts'
import type { AgentParts } from '../agent-parts.ts'
import { runLoop } from './loop.ts'
import { reasonOf } from './fire-trigger.ts'
import { toRun, type Run } from '../run.ts'

/** What was said, as it gets into a run. */
export function inputFor({ redact }: AgentParts, input: string | Message): Message {
  const message = toInput(input)
  if (redact === undefined) return message
  const content = message.content.map((part) =>
    part.type === 'text' ? Object.freeze({ ...part, text: redact(part.text) as string }) : part,
  )
  return Object.freeze({ ...message, content: Object.freeze(content) })
}

/** onUserInput, then the loop. Whatever happens, it resolves with a run. */
export async function beginRun(run: RunContext, input: Message): Promise<Run> {
  let final: FinalRecord | undefined
  run.starts = { begin: beginRun }
  try {
    const taken = takeInput(run, input)
    final = taken instanceof Promise ? await taken : taken
    if (final === undefined) {
      announce(run)
      run.checkpoint('started')
      await runLoop(run)
      final = run.execution.final
    } else {
      await run.shadows?.settle()
      run.checkpoint('inputBlocked')
    }
  } catch (thrown) {
    final = brokenRecord(run, thrown)
  }
  return concludeRun(run, final)
}

function announce({ effects, execution, state }: RunContext): void {
  effects.emit?.({ type: 'started', executionId: execution.id, agentId: state.agentId, at: execution.startedAt })
}

/** The record of a run that a defect of our own has broken: a failed run, not a crash. */
export function brokenRecord(run: RunContext, thrown: unknown): FinalRecord {
  const known = run.opened ? run.execution.final : undefined
  if (known !== undefined) return known // it had ended already, and a run ends once
  run.failure ??= toAgentError(thrown, 'HOOK_FAILED')
  const { message } = run.failure
  const final = recordOf(run, { status: 'failed', reason: reasonOf(run.failure), by: 'hookloop', message })
  if (run.opened) run.updateExecution({ status: 'failed', final })
  return final
}

/** Turns what is left of a run into its result, once observers have finished. */
export async function concludeRun(run: RunContext, final: FinalRecord | undefined): Promise<Run> {
  const draining = run.outstanding.drain()
  if (draining !== undefined) await draining
  if (run.shadows !== undefined) await run.shadows.settle()
  try {
    await run.effects.settle?.()
  } catch (thrown) {
    return toResult(run, unkeptRecord(run, thrown))
  }
  return toResult(run, final)
}

/** The end of a run that cannot be stored: nobody has been told of another one yet. */
function unkeptRecord(run: RunContext, thrown: unknown): FinalRecord {
  run.failure = toAgentError(thrown, 'STORE_FAILED')
  const { message } = run.failure
  const final = recordOf(run, { status: 'failed', reason: 'persistenceFailed', by: 'store', message })
  if (run.opened) run.updateExecution({ status: 'failed', final })
  return final
}

function toResult(run: RunContext, final: FinalRecord | undefined): Run {
  run.outstanding.release()
  run.deadline.clear()
  const result = toRun(run, final)
  if (result.status === 'suspended') {
    run.effects.emit?.({ type: 'suspended', executionId: run.execution.id, pending: result.pending })
  } else {
    run.effects.emit?.({ type: 'finished', record: result.final })
  }
  return result
}

/** A state that takes input: a suspended one takes answers. */
export function readyState(state: AgentState): AgentState {
  if (state.execution?.status !== 'suspended') return state
  throw new AgentError(
    'STATE_SUSPENDED',
    'The state is suspended: it waits for answers, not for input. Go on with agent.resume(run, { answers }).',
  )
}

/** The state a conversation begins with, or goes on with. */
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

/** Lets hooks rewrite or refuse the input, then opens the execution. Gives the final record of a refusal. */
function takeInput(run: RunContext, input: Message): FinalRecord | undefined | Promise<FinalRecord | undefined> {
  try {
    if (run.effects.cancelled()) return cancelledRecord(run)
  } catch (thrown) {
    return refused(run, toAgentError(thrown, 'HOOK_FAILED'))
  }
  const plan = run.parts.stack.plan('onUserInput')
  if (!plan.empty) return judgeInput(run, plan, input)
  void run.fire('onUserInput', { input }) // for shadows
  openExecution(run, input)
  return undefined
}

async function judgeInput(run: RunContext, plan: Plan, input: Message): Promise<FinalRecord | undefined> {
  const firing = new Invocation(run, plan, run.state, { input })
  try {
    await run.transformOrThrow(firing, plan)
    await run.judge(firing, plan)
    if (firing.failure !== undefined) throw firing.failure
    if (run.effects.cancelled()) return cancelledRecord(run)
  } catch (thrown) {
    if (thrown instanceof HookFailure && run.effects.cancelled()) return cancelledRecord(run)
    return refused(run, thrown instanceof HookFailure ? thrown.error : toAgentError(thrown, 'HOOK_FAILED'))
  }
  if (firing.blocked !== undefined) {
    const { by, message } = firing.blocked
    return recordOf(run, { status: 'stopped', reason: 'inputBlocked', by, message })
  }
  openExecution(run, firing.facts['input'] as Message)
  return undefined
}

function cancelledRecord(run: RunContext): FinalRecord {
  const message = 'The run was cancelled.'
  return recordOf(run, { status: 'cancelled', reason: 'userRequested', by: 'signal', message })
}

/** A hook on the input failed: the run did, and there is no execution. */
function refused(run: RunContext, error: AgentError): FinalRecord {
  const { code, message } = error
  run.failure = error
  run.effects.emit?.({ type: 'error', error: { code, message, during: 'onUserInput' } })
  return recordOf(run, { status: 'failed', reason: reasonOf(error), by: 'error at onUserInput', message })
}

function openExecution(run: RunContext, input: Message): void {
  const { state } = run
  run.opened = true
  run.state = AgentState.patch(state, {
    messages: withoutOpenCalls(state.messages).append(input),
    spentBefore: state.usage,
    executionCount: state.executionCount + 1,
    execution: Object.freeze({
      id: run.effects.newId(),
      status: 'running',
      startedAt: run.now,
      waitedMs: Math.max(0, run.takenOverAt - run.now), // of a subagent that is begun again, where it was cut off
      steps: List.empty<Step>(),
      votes: Object.freeze([]),
      usage: addUsage(noUsage, run.spentEarly),
      failures: 0,
      continuations: Object.freeze({ inRow: 0, total: 0 }),
      hooks: run.parts.stack.records,
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
  run: RunContext,
  record: { status: FinalStatus; reason: StopReason; by: string; message: string },
): FinalRecord {
  return Object.freeze({ ...record, votes: Object.freeze([]), at: run.now })
}
