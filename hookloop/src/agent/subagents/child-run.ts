import { SUBAGENT_KEY, AgentState } from '../../state/agent-state.ts'
import { countVotes, type ContinuationOutcome } from '../../state/continuation.ts'
import type { Emit } from '../../state/event.ts'
import type { FinalRecord, FinalStatus, Step } from '../../state/execution.ts'
import type { JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import { toInput, type Message } from '../../state/message.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import type { Above, AgentPlace } from '../../state/subagent.ts'
import { addUsage, noUsage, totalTokens, type Usage } from '../../state/usage.ts'
import type { EffectPath } from '../../effects/keys.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { Budget } from '../capability.ts'
import { RunContext } from '../context/run-context.ts'
import { childParts, inheritedMetadata } from './child-parts.ts'

/** The subagent of a call and its input, as the tool returns them. */
export type Delegation = { readonly name: string; readonly to: object; readonly input: string | Message }

/** The position of a subagent among those that start together. */
export type BudgetShare = { readonly index: number; readonly of: number }

/** A run of a subagent: its first one, or a continuation that hooks have requested. */
export type ChildStart = {
  readonly call: string
  readonly n: number
  readonly delegation: Delegation
  readonly share: BudgetShare
  /** What it is asked, if it is a continuation. */
  readonly request?: string | undefined
  /** Called with its ledger when it has ended, or waits. */
  readonly tell: (ledger: readonly TimedLedgerEntry[]) => void
}

/** How a subagent has ended. */
export type ChildOutcome = {
  readonly status: FinalStatus
  readonly outcome: ContinuationOutcome
  readonly message: string
  /** Its answer: the typed answer if it has a schema, otherwise the text. */
  readonly output: unknown
  readonly usage: Usage
  /** Whether a tool call of it succeeded. */
  readonly hasWorked: boolean
  readonly left: readonly string[]
  readonly failure: RunContext['failure']
}

/** Runs a subagent to its end. It is a part of its parent's journal, so it suspends, resumes and replays with it. */
export async function runChild(parent: RunContext, start: ChildStart): Promise<ChildOutcome> {
  const { delegation, request } = start
  const path = childPath(parent, start)
  const place: AgentPlace = { agent: delegation.name, step: parent.step, call: start.call }
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
    return outcomeOf(run, final)
  } finally {
    effects.time.close()
    start.tell(ledgerInside(place, { entries: run.ledgerOf.all, names: toolNames(run.state) }))
  }
}

export function childPath(
  parent: RunContext,
  { call, n, delegation }: Pick<ChildStart, 'call' | 'n' | 'delegation'>,
): EffectPath {
  return [...parent.effects.path, { step: parent.step, call, n, agent: delegation.name }]
}

/** The state that a run of a subagent starts with. */
function initialState(parent: RunContext, parts: AgentParts, start: ChildStart, agentId: string): AgentState {
  const { delegation, n } = start
  const { log } = parent.effects.journal
  const before = n === 0 ? undefined : log.scope(childPath(parent, { ...start, n: n - 1 })).state
  if (before !== undefined)
    return AgentState.create({ ...AgentState.fieldsOf(before), spentBefore: noUsage, execution: undefined })
  return AgentState.create({
    agentId,
    parentId: parent.state.agentId,
    systemPrompt: parts.instructions,
    metadata: metadataFor(parent, delegation, { name: delegation.name, depth: parts.level }),
  })
}

function outcomeOf(run: RunContext, final: FinalRecord): ChildOutcome {
  const { status, reason, by, message, votes } = final
  const { output, state, left, failure, blocked } = run
  const text = blocked === undefined ? (state.lastStep?.text ?? '') : ''
  return {
    status,
    outcome:
      votes.length > 0
        ? countVotes(votes)
        : { shouldContinue: false, stopReason: reason, resolvedBy: by, evaluations: votes },
    message,
    output: output === undefined ? text : output.value,
    usage: state.usage,
    hasWorked: blocked === undefined && stepsOf(state).some(({ toolExecutions }) => toolExecutions.some(isOk)),
    left,
    failure,
  }
}

function stepsOf({ execution }: AgentState): readonly Step[] {
  return execution?.steps ?? []
}

function isOk({ status }: ToolExecution): boolean {
  return status === 'ok'
}

/** The ledger of a subagent as part of that of its parent. */
export function ledgerInside(
  place: AgentPlace,
  { entries, names }: { readonly entries: readonly TimedLedgerEntry[]; readonly names: ReadonlyMap<string, string> },
): readonly TimedLedgerEntry[] {
  return entries.map(({ path = [], ...entry }) => {
    const tool = path.length === 0 && entry.call !== undefined ? names.get(`${entry.step}/${entry.call}`) : undefined
    return Object.freeze({ ...entry, path: [place, ...path], ...(tool !== undefined && { tool }) })
  })
}

/** The tools that a subagent has called, by step and call id. The parent's ledger stores their names. */
export function toolNames({ execution }: AgentState): ReadonlyMap<string, string> {
  const steps = execution?.steps ?? []
  return new Map(
    steps.flatMap(({ index, toolCalls }) => toolCalls.map(({ id, name }) => [`${index}/${id}`, name] as const)),
  )
}

/** The metadata of its parent, and its own name and depth. */
function metadataFor({ state }: RunContext, { to }: Delegation, who: JsonObject): JsonObject {
  return Object.entries({ ...inheritedMetadata(state, to), [SUBAGENT_KEY]: who }).reduce(
    (made, [key, value]) => made.withMetadata(key, value),
    AgentState.create({ agentId: '' }),
  ).metadata
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
