import { AgentState } from '../../state/agent-state.ts'
import type { ContinuationEvaluation, ContinuationOutcome } from '../../state/continuation.ts'
import type { FinalStatus } from '../../state/execution.ts'
import type { JsonObject } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import { toInput } from '../../state/message.ts'
import { fromStateJson } from '../../state/saved-run.ts'
import type { AgentPlace, OpenChild } from '../../state/subagent.ts'
import type { Answers } from '../../state/tool-call.ts'
import { addUsage, noUsage, subtractUsage, type Usage } from '../../state/usage.ts'
import { aboveChild, type Share } from './child-budget.ts'
import { ChildEffects, emitFrom } from './child-effects.ts'
import { childParts, metadataInside } from './child-parts.ts'
import { Turns, type Ended } from './parent-link.ts'
import { finalStatus } from '../loop/final-status.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { ActiveCall } from '../loop/open-step.ts'

/** Where hooks find who a subagent is, among the metadata it has from its parent. */
export const SUBAGENT_KEY = 'hookloop.subagent'

/** Who is to do what, as a tool says it. */
export type Delegated = { readonly name: string; readonly to: object; readonly input: Parameters<typeof toInput>[0] }

type Begun = {
  readonly place: AgentPlace
  readonly delegated: Delegated
  readonly above: OpenChild['above']
  readonly ledger: readonly TimedLedgerEntry[]
  readonly state: (id: () => string) => AgentState
  readonly go: (run: RunContext) => Promise<Ended>
}

type Parked = {
  readonly outcome: ContinuationOutcome
  readonly answer: (votes: readonly ContinuationEvaluation[]) => void
}

/** How a subagent stands when it comes to an end: as it is about to, or as it has. */
export type ChildEnd = { readonly status: FinalStatus; readonly outcome: ContinuationOutcome; readonly message: string }

/**
 * An agent at work for a call of another. It runs by itself until it is about to end, and waits there for its parent,
 * which may want more of it; or until it waits for a person.
 */
export class ChildRun {
  readonly place: AgentPlace
  readonly run: RunContext
  readonly #parent: RunContext
  readonly #effects: ChildEffects
  #parked: Parked | undefined
  #ended: Ended | undefined
  #arrived: () => void = () => undefined
  #arrival = this.#nextArrival()
  /** How much of the ledger, of what was spent and of the time that was waited the parent knows. */
  #told: number
  #billed: Usage
  #waited: number

  private constructor(parent: RunContext, begun: Begun) {
    const { place, delegated, above, ledger } = begun
    const path = [...(parent.family?.path ?? []), place]
    this.place = place
    this.#parent = parent
    this.#effects = new ChildEffects(
      parent.effects.scope(`${place.step}.${indexOf(parent, place)}`),
      emitFrom(place, parent.effects.emit),
    )
    const questions = parent.family?.questions ?? questionsOf(parent)
    this.run = parent.child(
      childParts(parent.parts, delegated),
      this.#effects,
      begun.state(() => this.#effects.newId()),
      {
        streams: parent.streams,
        ledger,
        family: { path, above, questions, letStop: (outcome) => this.#park(outcome) },
      },
    )
    this.run.takenOverAt = parent.takenOverAt
    this.#told = ledger.length
    this.#billed = this.run.state.usage
    this.#waited = waitedAtBegin(this.run)
    void begun.go(this.run).then((ended) => {
      this.#ended = ended
      this.#arrived()
    })
  }

  static begin(
    parent: RunContext,
    call: ActiveCall,
    { delegated, share }: { delegated: Delegated; share: Share },
  ): ChildRun {
    const message = toInput(delegated.input)
    const parts = childParts(parent.parts, delegated)
    const place = { agent: delegated.name, step: parent.step, call: call.id }
    return new ChildRun(parent, {
      place,
      delegated,
      above: aboveChild(parent, share),
      ledger: [],
      state: (newId) =>
        AgentState.create({
          agentId: newId(),
          parentId: parent.state.agentId,
          systemPrompt: parts.instructions,
          metadata: metadataFor(parent, delegated, { name: delegated.name, depth: parts.level }),
        }),
      go: (run) => parent.starts!.begin(run, message),
    })
  }

  /** Goes on with one that waited for a person. */
  static resume(
    parent: RunContext,
    call: ActiveCall,
    { delegated, answers }: { delegated: Delegated; answers: Answers },
  ): ChildRun {
    const child = call.child!
    const place = { agent: child.agent, step: parent.step, call: call.id }
    return new ChildRun(parent, {
      place,
      delegated,
      above: child.above,
      ledger: ledgerOf(parent, place),
      state: () => fromStateJson(child.state),
      go: (run) => parent.starts!.resume!(run, answers),
    })
  }

  /** Resolves when it is about to end, has ended, or waits for a person. */
  arrived(): Promise<void> {
    return this.#arrival
  }

  get isSuspended(): boolean {
    return this.#ended?.status === 'suspended'
  }

  /** Whether it can still be asked for more. */
  get canGoOn(): boolean {
    return this.#parked !== undefined
  }

  /** Lets it end, or go on if there are votes for that, and waits until it is there. */
  async answer(votes: readonly ContinuationEvaluation[]): Promise<void> {
    const parked = this.#parked
    if (parked === undefined) return
    this.#parked = undefined
    this.#arrival = this.#nextArrival()
    parked.answer(votes)
    await this.#arrival
  }

  /** How it ends, or ended. */
  get end(): ChildEnd {
    if (this.#parked !== undefined) {
      const { outcome } = this.#parked
      const vote = outcome.evaluations.find(({ source }) => source === outcome.resolvedBy)
      return { status: finalStatus(this.run, outcome.stopReason ?? 'completed'), outcome, message: vote?.message ?? '' }
    }
    const { status, reason, by, message, votes } = this.#ended!.final!
    return {
      status,
      message,
      outcome: { shouldContinue: false, stopReason: reason, resolvedBy: by, evaluations: votes },
    }
  }

  /** What it has come to: the typed answer where it has a schema, otherwise the text. */
  get output(): unknown {
    const { output, state, opened } = this.run
    if (output !== undefined) return output.value
    return opened ? (state.lastStep?.text ?? '') : ''
  }

  /** The whole of what it has spent. */
  get spent(): Usage {
    const { opened, state, spent, spentEarly } = this.run
    return opened ? addUsage(AgentState.fieldsOf(state).spentBefore, spent) : addUsage(noUsage, spentEarly)
  }

  /** Takes its time over into its parent's, and what it did, spent and waited for since that was done last. */
  tell(): { readonly spent: Usage; readonly waitedMs: number } {
    this.#parent.effects.join(this.#effects.inner)
    this.#tellLedger()
    const { spent } = this
    const waited = this.run.opened ? this.run.execution.waitedMs : 0
    const told = { spent: subtractUsage(spent, this.#billed), waitedMs: Math.max(0, waited - this.#waited) }
    this.#billed = spent
    this.#waited = Math.max(waited, this.#waited)
    return told
  }

  /** What is left of it in its parent's call while it waits. */
  save(): OpenChild {
    return Object.freeze({ agent: this.place.agent, above: this.run.family!.above, state: this.run.state.toJSON() })
  }

  #tellLedger(): void {
    const names = toolNames(this.run)
    const entries = this.run.book.since(this.#told)
    for (const entry of entries) {
      const { durationMs, path = [], ...what } = entry
      const tool = path.length === 0 && what.call !== undefined ? names.get(`${what.step}/${what.call}`) : undefined
      this.#parent.book.adopt({ ...what, path: [this.place, ...path], ...(tool !== undefined && { tool }) }, durationMs)
    }
    this.#told += entries.length
  }

  #park(outcome: ContinuationOutcome): Promise<readonly ContinuationEvaluation[]> {
    return new Promise((answer) => {
      this.#parked = { outcome, answer }
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

const questions = new WeakMap<RunContext, Turns>()

/** One line for the questions of a run and of everybody in it. */
function questionsOf(run: RunContext): Turns {
  let turns = questions.get(run)
  if (turns === undefined) questions.set(run, (turns = new Turns()))
  return turns
}

/** What its parent's hooks know, and who it is. */
function metadataFor({ state }: RunContext, { to }: Delegated, who: JsonObject): JsonObject {
  return Object.entries({ ...metadataInside(state, to), [SUBAGENT_KEY]: who }).reduce(
    (made, [key, value]) => made.withMetadata(key, value),
    AgentState.create({ agentId: '' }),
  ).metadata
}

/** The time that a run that begins or goes on has waited before; what it waits for from here on, its parent waits for too. */
function waitedAtBegin({ state, now, takenOverAt }: RunContext): number {
  const { execution } = state
  if (execution === undefined) return Math.max(0, takenOverAt - now)
  return execution.waitedMs + Math.max(0, now - (execution.cursor?.waitingSince ?? now))
}

/** What was told of a subagent before it waited. */
function ledgerOf({ book }: RunContext, { step, call }: AgentPlace): readonly TimedLedgerEntry[] {
  return book.since(0).flatMap(({ path, tool: _tool, ...entry }) => {
    const [first, ...rest] = path ?? []
    if (first?.call !== call || first.step !== step) return []
    return [rest.length === 0 ? entry : { ...entry, path: rest }]
  })
}

/** The tools that a subagent has called, by step and id: its state is not at hand when its ledger is read. */
function toolNames({ state, open }: RunContext): ReadonlyMap<string, string> {
  const steps = state.execution?.steps.slice() ?? []
  const closed = steps.flatMap(({ index, toolCalls }) =>
    toolCalls.map(({ id, name }) => [`${index}/${id}`, name] as const),
  )
  const opened = (open?.calls ?? []).map(({ id, name }) => [`${open!.index}/${id}`, name] as const)
  return new Map([...closed, ...opened])
}
