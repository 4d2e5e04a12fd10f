import { AgentState, SUBAGENT_KEY } from '../../state/agent-state.ts'
import type { ContinuationEvaluation, ContinuationOutcome } from '../../state/continuation.ts'
import { workedMs, type FinalStatus } from '../../state/execution.ts'
import type { JsonObject } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import { toInput } from '../../state/message.ts'
import { fromStateJson } from '../../state/saved-run.ts'
import type { Above, AgentPlace, OpenChild } from '../../state/subagent.ts'
import type { Answers } from '../../state/tool-call.ts'
import { addUsage, noUsage, subtractUsage, totalTokens, type Usage } from '../../state/usage.ts'
import type { Emit } from '../../state/event.ts'
import type { Effects } from '../../effects/effects.ts'
import type { Budget } from '../capability.ts'
import type { ActiveCall } from '../loop/open-step.ts'
import { RunContext } from '../loop/run-context.ts'
import { childParts, inheritedMetadata } from './child-parts.ts'
import { SerialQueue, type ChildResult } from './parent-link.ts'

/** The subagent of a call and its input, as the tool returns them. */
export type Delegation = { readonly name: string; readonly to: object; readonly input: Parameters<typeof toInput>[0] }

type ChildStart = {
  readonly place: AgentPlace
  readonly delegation: Delegation
  readonly ancestors: OpenChild['above']
  readonly ledger: readonly TimedLedgerEntry[]
  readonly state: (id: () => string) => AgentState
  readonly start: (run: RunContext) => Promise<ChildResult>
}

/** A subagent that is about to stop, and waits for its parent. */
type Stopping = {
  readonly outcome: ContinuationOutcome
  readonly answer: (votes: readonly ContinuationEvaluation[]) => void
}

/** How a subagent is about to end, or has ended. */
export type ChildEnd = { readonly status: FinalStatus; readonly outcome: ContinuationOutcome; readonly message: string }

/**
 * The run of a subagent. It runs on its own until it is suspended, or until it is about to stop: there it waits for its
 * parent, whose hooks may request another step.
 */
export class ChildRun {
  readonly place: AgentPlace
  readonly run: RunContext
  readonly #parent: RunContext
  readonly #scope: Effects
  #stopping: Stopping | undefined
  #ended: ChildResult | undefined
  #arrived: () => void = () => undefined
  #arrival = this.#nextArrival()
  /** How much of the ledger, the cost and the waiting time was reported to the parent. */
  #reported: number
  #billed: Usage
  #waited: number

  private constructor(parent: RunContext, how: ChildStart) {
    const { place, delegation, ancestors, ledger } = how
    this.place = place
    this.#parent = parent
    const emit = emitFrom(place, parent.effects.emit)
    // A scope, so that everything it does is recorded and replayed with the run. The checkpoints of the root run cover it.
    this.#scope = parent.effects.child(`${place.step}.${indexOf(parent, place)}`, emit)
    const effects = this.#scope
    const parts = childParts(parent.parts, delegation)
    const { witness } = parent
    this.run = new RunContext(
      witness?.childParts(parts) ?? parts,
      effects,
      how.state(() => effects.newId()),
      {
        streams: parent.streams,
        ledger,
        parentLink: {
          path: [...(parent.parentLink?.path ?? []), place],
          conversation: parent.conversation,
          ancestors,
          approvals: parent.parentLink?.approvals ?? approvalsOf(parent),
          confirmStop: (outcome) => this.#waitForParent(outcome),
        },
        witness: witness && { childParts: witness.childParts },
      },
    )
    this.run.resumedAt = parent.resumedAt
    this.#reported = ledger.length
    this.#billed = this.run.state.usage
    this.#waited = waitedAtStart(this.run)
    void how.start(this.run).then((ended) => {
      this.#ended = ended
      this.#arrived()
    })
  }

  static start(
    parent: RunContext,
    call: ActiveCall,
    { delegation, share }: { delegation: Delegation; share: BudgetShare },
  ): ChildRun {
    const message = toInput(delegation.input)
    const parts = childParts(parent.parts, delegation)
    const place = { agent: delegation.name, step: parent.step, call: call.id }
    return new ChildRun(parent, {
      place,
      delegation,
      ancestors: ancestorsOfChild(parent, share),
      ledger: [],
      state: (newId) =>
        AgentState.create({
          agentId: newId(),
          parentId: parent.state.agentId,
          systemPrompt: parts.instructions,
          metadata: metadataFor(parent, delegation, { name: delegation.name, depth: parts.level }),
        }),
      start: (run) => parent.childRuns!.start(run, message),
    })
  }

  /** Resumes a subagent that was suspended for approval. */
  static resume(
    parent: RunContext,
    call: ActiveCall,
    { delegation, answers }: { delegation: Delegation; answers: Answers },
  ): ChildRun {
    const child = call.child!
    const place = { agent: child.agent, step: parent.step, call: call.id }
    return new ChildRun(parent, {
      place,
      delegation,
      ancestors: child.above,
      ledger: ledgerOf(parent, place),
      state: () => fromStateJson(child.state),
      start: (run) => parent.childRuns!.resume!(run, answers),
    })
  }

  /** Resolves when it is about to stop, has ended, or is suspended. */
  arrived(): Promise<void> {
    return this.#arrival
  }

  get isSuspended(): boolean {
    return this.#ended?.status === 'suspended'
  }

  /** Whether the parent can still request another step. */
  get canContinue(): boolean {
    return this.#stopping !== undefined
  }

  /** Lets it stop, or continue if there are votes for that, and waits until it has. */
  async answer(votes: readonly ContinuationEvaluation[]): Promise<void> {
    const stopping = this.#stopping
    if (stopping === undefined) return
    this.#stopping = undefined
    this.#arrival = this.#nextArrival()
    stopping.answer(votes)
    await this.#arrival
  }

  /** How it is about to end, or has ended. */
  get end(): ChildEnd {
    if (this.#stopping !== undefined) {
      const { outcome } = this.#stopping
      const vote = outcome.evaluations.find(({ source }) => source === outcome.resolvedBy)
      const status = this.run.finalStatus(outcome.stopReason ?? 'completed')
      return { status, outcome, message: vote?.message ?? '' }
    }
    const { status, reason, by, message, votes } = this.#ended!.final!
    return {
      status,
      message,
      outcome: { shouldContinue: false, stopReason: reason, resolvedBy: by, evaluations: votes },
    }
  }

  /** Its answer: the typed answer if it has a schema, otherwise the text. */
  get output(): unknown {
    const { output, state, hasExecution } = this.run
    if (output !== undefined) return output.value
    return hasExecution ? (state.lastStep?.text ?? '') : ''
  }

  /** Everything it has spent. */
  get spent(): Usage {
    const { hasExecution, state, spent, spentEarly } = this.run
    return hasExecution ? addUsage(AgentState.fieldsOf(state).spentBefore, spent) : addUsage(noUsage, spentEarly)
  }

  /** Adds its time and ledger to the parent's. Returns what it has spent and waited since the last report. */
  report(): { readonly spent: Usage; readonly waitedMs: number } {
    this.#parent.effects.join(this.#scope)
    this.#reportLedger()
    const { spent } = this
    const waited = this.run.hasExecution ? this.run.execution.waitedMs : 0
    const report = { spent: subtractUsage(spent, this.#billed), waitedMs: Math.max(0, waited - this.#waited) }
    this.#billed = spent
    this.#waited = Math.max(waited, this.#waited)
    return report
  }

  /** What is stored in the call of its parent while it is suspended. */
  save(): OpenChild {
    return Object.freeze({
      agent: this.place.agent,
      above: this.run.parentLink!.ancestors,
      state: this.run.state.toJSON(),
    })
  }

  #reportLedger(): void {
    const names = toolNames(this.run)
    const entries = this.run.ledgerWriter.since(this.#reported)
    for (const entry of entries) {
      const { durationMs, path = [], ...what } = entry
      const tool = path.length === 0 && what.call !== undefined ? names.get(`${what.step}/${what.call}`) : undefined
      this.#parent.ledgerWriter.adopt(
        { ...what, path: [this.place, ...path], ...(tool !== undefined && { tool }) },
        durationMs,
      )
    }
    this.#reported += entries.length
  }

  #waitForParent(outcome: ContinuationOutcome): Promise<readonly ContinuationEvaluation[]> {
    return new Promise((answer) => {
      this.#stopping = { outcome, answer }
      this.#arrived()
    })
  }

  #nextArrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#arrived = resolve
    })
  }
}

function indexOf({ open }: RunContext, { call }: AgentPlace): number {
  return open!.calls.findIndex(({ id }) => id === call)
}

const approvals = new WeakMap<RunContext, SerialQueue>()

/** The queue for the approvals of a root run and its subagents. */
function approvalsOf(run: RunContext): SerialQueue {
  let queue = approvals.get(run)
  if (queue === undefined) approvals.set(run, (queue = new SerialQueue()))
  return queue
}

/** The metadata of its parent, and its own name and depth. */
function metadataFor({ state }: RunContext, { to }: Delegation, who: JsonObject): JsonObject {
  return Object.entries({ ...inheritedMetadata(state, to), [SUBAGENT_KEY]: who }).reduce(
    (made, [key, value]) => made.withMetadata(key, value),
    AgentState.create({ agentId: '' }),
  ).metadata
}

/** How long a run had waited when it was started or resumed. From then on, its parent waits with it. */
function waitedAtStart({ state, now, resumedAt }: RunContext): number {
  const { execution } = state
  if (execution === undefined) return Math.max(0, resumedAt - now)
  return execution.waitedMs + Math.max(0, now - (execution.cursor?.waitingSince ?? now))
}

/** The ledger of a subagent before it was suspended. */
function ledgerOf({ ledgerWriter }: RunContext, { step, call }: AgentPlace): readonly TimedLedgerEntry[] {
  return ledgerWriter.since(0).flatMap(({ path, tool: _tool, ...entry }) => {
    const [first, ...rest] = path ?? []
    if (first?.call !== call || first.step !== step) return []
    return [rest.length === 0 ? entry : { ...entry, path: rest }]
  })
}

/** The tools that a subagent has called, by step and call id. The parent's ledger stores their names. */
function toolNames({ state, open }: RunContext): ReadonlyMap<string, string> {
  const steps = state.execution?.steps.slice() ?? []
  const closed = steps.flatMap(({ index, toolCalls }) =>
    toolCalls.map(({ id, name }) => [`${index}/${id}`, name] as const),
  )
  const opened = (open?.calls ?? []).map(({ id, name }) => [`${open!.index}/${id}`, name] as const)
  return new Map([...closed, ...opened])
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

/** The position of a subagent among those that start together. */
export type BudgetShare = { readonly index: number; readonly of: number }

/**
 * The counts of the ancestors of a subagent when it starts. The rest of a budget is divided among the subagents that start
 * together: the shares of the others count as spent while it runs, and what they do not use is available again later.
 */
export function ancestorsOfChild(run: RunContext, share: BudgetShare): readonly Above[] {
  const { parts, ancestors = [], spent, execution, now, resumedAt } = run
  const worked = workedMs(execution, Math.max(now, resumedAt)) // after a crash, the replayed clock is behind
  const levels: readonly Above[] = [...ancestors, { usage: noUsage, workedMs: 0 }]
  return levels.map((ancestor, level) => ({
    usage: withReserved(addUsage(ancestor.usage, spent), parts.budgets[level] ?? {}, share),
    workedMs: ancestor.workedMs + worked,
  }))
}

function withReserved(spent: Usage, budget: Budget, share: BudgetShare): Usage {
  if (share.of === 1) return spent
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
