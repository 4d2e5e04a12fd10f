import { AgentState, metadataOf, SUBAGENT_KEY } from '../state/agent-state.ts'
import { countVotes, type ContinuationOutcome } from '../state/continuation.ts'
import type { Emit } from '../state/event.ts'
import type { FinalRecord, FinalStatus, Step } from '../state/execution.ts'
import { textOfJson } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { toInput, type Message } from '../state/message.ts'
import { blockedExecution, failedExecution, type ToolExecution } from '../state/tool-call.ts'
import type { Above, AgentPlace } from '../state/subagent.ts'
import { addUsage, noUsage, totalTokens, type Usage } from '../state/usage.ts'
import type { EffectPath } from '../effects/keys.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import type { Budget } from '../agent/capability.ts'
import type { ActiveCall } from '../context/open-step.ts'
import { RunContext } from '../context/run-context.ts'
import { toExecution } from '../tools/execute-call.ts'
import { childParts, inheritedMetadata } from './child-parts.ts'

/** The subagent of a call and its input, as the tool returns them. */
export type Delegation = { readonly name: string; readonly to: object; readonly input: string | Message }

/** The position of a subagent among those that start together. */
export type BudgetShare = { readonly index: number; readonly of: number }

/** A run of a subagent: its first one, or a continuation that hooks have requested. */
export type ChildStart = {
  readonly call: ActiveCall
  readonly n: number
  readonly delegation: Delegation
  readonly share: BudgetShare
  /** What it is asked, if it is a continuation. */
  readonly request?: string | undefined
  /** The length of its result. */
  readonly maxChars: number
}

/** What is recorded of a subagent that has ended. Hooks of the parent decide about it in the order of the calls. */
export type ChildEnd = {
  readonly kind: 'child'
  readonly n: number
  readonly agent: string
  readonly status: FinalStatus
  readonly outcome: ContinuationOutcome
  readonly message: string
  readonly usage: Usage
  readonly execution: ToolExecution
  /** Whether a tool call of it succeeded: that resets the count of continuations in a row. */
  readonly hasWorked?: true
  /** Work that may still be running. */
  readonly stillRunning?: readonly string[]
}

/** Runs a subagent to its end. It is a part of its parent's journal, so it suspends, resumes and replays with it. */
export async function runChild(parent: RunContext, start: ChildStart): Promise<ChildEnd> {
  const { delegation, request, call } = start
  const path = childPath(parent, { ...start, agent: delegation.name })
  const place: AgentPlace = { agent: delegation.name, step: parent.step, call: call.id }
  const effects = parent.effects.child(path, emitFrom(place, parent.effects.listener))
  const { scopeLog: scope } = effects
  const parts = childParts(parent.parts, delegation)
  const before = initialState(parent, parts, start, effects.agentId)
  const run = new RunContext(parts, effects, scope.state ?? before, {
    streams: parent.streams,
    ledger: scope.ledger,
    parent: {
      run: parent,
      path: [...(parent.parent?.path ?? []), place],
      conversation: parent.conversation,
      ancestors: ancestorsOfChild(parent, start.share),
      approvals: parent.approvals,
    },
  })
  try {
    const final = await parent.drive!(run, toInput(request ?? delegation.input))
    parent.effects.stamp(scope.at)
    return endOf(run, final, { parent, start })
  } finally {
    effects.time.close()
    noteInside(call, place, { entries: run.ledgerOf.all, state: run.state })
  }
}

export function childPath(
  parent: RunContext,
  { call, n, agent }: Pick<ChildStart, 'call' | 'n'> & { readonly agent: string },
): EffectPath {
  return [...parent.effects.path, { step: parent.step, call: call.id, n, agent }]
}

/** The state that a run of a subagent starts with. */
function initialState(parent: RunContext, parts: AgentParts, start: ChildStart, agentId: string): AgentState {
  const { delegation, n } = start
  const { log } = parent.effects.journal
  const last = { ...start, n: n - 1, agent: delegation.name }
  const before = n === 0 ? undefined : log.scope(childPath(parent, last)).state
  if (before !== undefined)
    return AgentState.create({ ...AgentState.fieldsOf(before), spentBefore: noUsage, execution: undefined })
  const who = Object.freeze({ name: delegation.name, depth: parts.level })
  return AgentState.create({
    agentId,
    parentId: parent.state.agentId,
    systemPrompt: parts.instructions,
    metadata: metadataOf({ ...inheritedMetadata(parent.state, delegation.to), [SUBAGENT_KEY]: who }),
  })
}

function endOf(
  run: RunContext,
  final: FinalRecord,
  { parent, start }: { readonly parent: RunContext; readonly start: ChildStart },
): ChildEnd {
  const { status, reason, by, message, votes } = final
  const { state, stillRunning, blocked } = run
  const agent = start.delegation.name
  const outcome =
    votes.length > 0
      ? countVotes(votes)
      : { shouldContinue: false, stopReason: reason, resolvedBy: by, evaluations: votes }
  const text = blocked === undefined ? (state.lastStep?.text ?? '') : ''
  const output = run.output === undefined ? text : run.output.value
  const shape = { maxChars: start.maxChars, redact: parent.parts.redact }
  const hasWorked = blocked === undefined && stepsOf(state).some(({ toolExecutions }) => toolExecutions.some(isOk))
  return {
    kind: 'child',
    n: start.n,
    agent,
    status,
    outcome,
    message,
    usage: state.usage,
    execution: withLostCalls(resultOf(agent, { status, outcome, message, output }, shape), state),
    ...(hasWorked && { hasWorked }),
    ...(stillRunning.length > 0 && { stillRunning }),
  }
}

/** The result of a subagent as the model of its parent gets it. */
function resultOf(
  agent: string,
  { status, outcome, message, output }: Pick<ChildEnd, 'status' | 'outcome' | 'message'> & { readonly output: unknown },
  shape: Parameters<typeof toExecution>[1],
): ToolExecution {
  const who = `The subagent "${agent}"`
  const why = message || outcome.stopReason || ''
  switch (status) {
    case 'completed':
      return toExecution(output === '' ? `${who} gave no answer.` : output, shape)
    case 'stopped': {
      if (outcome.stopReason === 'inputBlocked')
        return blockedExecution(outcome.resolvedBy ?? '', `${who} was not started: ${why}`)
      const stopped = `${who} was stopped by "${outcome.resolvedBy}" before it had finished: ${why}`
      if (typeof output !== 'string' || output === '') return failedExecution(stopped)
      return toExecution(`${stopped}\nIts answer so far:\n${output}`, shape)
    }
    case 'failed':
      return failedExecution(`${who} failed: ${why}`)
    case 'cancelled':
      return Object.freeze({
        status: 'outcomeUnknown',
        output: `The run was cancelled while the subagent "${agent}" was running. It may have had an effect.`,
      })
    default:
      return status satisfies never
  }
}

/** A subagent may end without an answer after a call whose outcome is unknown: then the call is in the result. */
function withLostCalls(execution: ToolExecution, state: AgentState): ToolExecution {
  const lost = stepsOf(state).flatMap(({ toolCalls, toolExecutions }) =>
    toolCalls.filter((_call, i) => toolExecutions[i]?.status === 'outcomeUnknown'),
  )
  if (lost.length === 0 || isOk(execution)) return execution
  const calls = lost.map(({ name, args }) => `- ${name} ${textOfJson(args)}`)
  const output = [textOfJson(execution.output), 'The outcome of these calls of it is unknown:', ...calls].join('\n')
  return Object.freeze({ ...execution, status: 'outcomeUnknown', output })
}

function stepsOf({ execution }: AgentState): readonly Step[] {
  return execution?.steps ?? []
}

function isOk({ status }: ToolExecution): boolean {
  return status === 'ok'
}

/** Keeps the ledger of a subagent, with the names of the tools that it has called, for that of its parent. */
export function noteInside(
  call: ActiveCall,
  place: AgentPlace,
  { entries, state }: { readonly entries: readonly TimedLedgerEntry[]; readonly state: AgentState | undefined },
): void {
  const names = new Map<string, string>()
  for (const { index, toolCalls } of state === undefined ? [] : stepsOf(state))
    for (const { id, name } of toolCalls) names.set(`${index}/${id}`, name)
  const inside = entries.map(({ path = [], ...entry }) => {
    const tool = path.length === 0 && entry.call !== undefined ? names.get(`${entry.step}/${entry.call}`) : undefined
    return Object.freeze({ ...entry, path: [place, ...path], ...(tool !== undefined && { tool }) })
  })
  call.inside = [...(call.inside ?? []), ...inside]
}

/** Emits the events of a subagent as events of its parent, with the path to it. */
function emitFrom(place: AgentPlace, emit: Emit | undefined): Emit | undefined {
  return (
    emit &&
    ((emitted) => {
      const { at } = emitted
      const [path, event] = emitted.type === 'subagent' ? [[place, ...emitted.path], emitted.event] : [[place], emitted]
      emit({ type: 'subagent', path, event, step: place.step, at })
    })
  )
}

/**
 * The counts of the ancestors of a subagent when it starts. The rest of a budget is divided among the subagents that start
 * together: the shares of the others count as spent while it runs, and what they do not use is available again later.
 */
export function ancestorsOfChild(run: RunContext, share: BudgetShare): readonly Above[] {
  const { parts, ancestors = [], spent, workedMs } = run
  const levels: readonly Above[] = [...ancestors, { usage: noUsage, workedMs: 0 }]
  return levels.map((ancestor, level) => ({
    usage: withReserved(addUsage(ancestor.usage, spent), parts.budgets[level] ?? {}, share),
    workedMs: ancestor.workedMs + workedMs,
  }))
}

function withReserved(spent: Usage, budget: Budget, share: BudgetShare): Usage {
  if (share.of <= 1) return spent
  const { tokens, costUsd, toolCalls } = budget
  return addUsage(spent, {
    ...(tokens !== undefined && { inputTokens: reserved(tokens - totalTokens(spent), share) }),
    ...(toolCalls !== undefined && { toolCalls: reserved(toolCalls - spent.toolCalls, share) }),
    ...(costUsd !== undefined && { costUsd: Math.max(0, costUsd - spent.costUsd) * (1 - 1 / share.of) }),
  })
}

/** What the others get of an amount. A remainder goes to the first ones. */
function reserved(left: number, { index, of }: BudgetShare): number {
  if (left <= 0) return 0
  const own = Math.floor(left / of) + (index < left % of ? 1 : 0)
  return left - own
}
