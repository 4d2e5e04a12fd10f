import { AgentState } from '../../state/agent-state.ts'
import { countVotes, type ContinuationEvaluation, type ContinuationOutcome } from '../../state/continuation.ts'
import type { ErrorRecord, Execution } from '../../state/execution.ts'
import type { ToModel } from '../../state/inference.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../../state/ledger.ts'
import type { List } from '../../state/list.ts'
import { addTokens, addUsage, noTokens, noUsage, type TokenUsage, type Usage } from '../../state/usage.ts'
import type { Checkpoint, Effects } from '../../effects/effects.ts'
import { messageOf, toAgentError, type AgentError } from '../../errors.ts'
import type { Asker, HookInference } from '../../hooks/infer.ts'
import type { Draft, FactValues, HookHost, LedgerHook, LedgerPlace } from '../../hooks/base-context.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { applyChange, stateChange } from '../../state/state-diff.ts'
import { HookFailure, isFatal, runGuards, runObservers, runTransforms } from '../../hooks/run-hooks.ts'
import type { Plan } from '../../hooks/stack.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import type { Family, Starts } from '../subagents/parent-link.ts'
import { HookCalls } from '../model/hook-infer.ts'
import { Ledger } from '../explain/ledger-writer.ts'
import type { OpenStep } from './open-step.ts'
import { Outstanding } from './pending-work.ts'
import type { AgentParts } from '../agent-parts.ts'
import { cancelledVote, givesUp, reasonOf, recover } from './fire-trigger.ts'
import { RunDeadline } from './run-lifetime.ts'
import { Shadows } from './shadows.ts'
import { usedFacts } from './redact-withheld.ts'

export type CallPlace = { readonly index: number; readonly toolName: string }

/**
 * The moving side of one run: the state as it is now, the open step, the ledger. It fires triggers and turns what
 * hooks decide and what fails into votes. One run, one instance; the agent knows nothing of it.
 */
export class RunContext implements HookHost {
  readonly parts: AgentParts
  readonly effects: Effects
  readonly outstanding: Outstanding
  readonly deadline: RunDeadline
  state: AgentState
  open: OpenStep | undefined
  /** The error that ended the run, if one did. The first is kept. */
  failure: AgentError | undefined
  /** The typed answer, once it is read. */
  output: { readonly value: unknown } | undefined
  #cancelled = false
  /** Whether this run has an execution; until then the state may still show an earlier one. */
  opened = false
  /** Called between steps; true means that whoever drives the run wants it to pause there. */
  readonly pauses: ((state: AgentState) => Promise<boolean>) | undefined
  /** Whether answers are wanted as they are written. */
  readonly streams: boolean
  /** What a subagent has from the run that it is part of. */
  readonly family: Family | undefined
  /** How agents inside this run are begun and gone on with, once it has begun itself. */
  starts: Starts<RunContext> | undefined
  /** When another process went on with the run, if one did since its state was kept. */
  takenOverAt = 0
  /** What was spent before there was an execution to bill it to. */
  spentEarly = noTokens
  /** The ledger while it is written. */
  readonly book: Ledger
  readonly shadows: Shadows | undefined

  constructor(
    parts: AgentParts,
    effects: Effects,
    state: AgentState,
    options: {
      readonly pauses?: ((state: AgentState) => Promise<boolean>) | undefined
      readonly streams?: boolean
      /** Whether the signal can abort at all. A run that nobody can cancel need not watch for it. */
      readonly cancellable?: boolean
      readonly ledger?: readonly TimedLedgerEntry[]
      readonly family?: Family
    } = {},
  ) {
    this.parts = parts
    this.effects = effects
    this.state = state
    this.pauses = options.pauses
    this.streams = options.streams ?? false
    this.family = options.family
    this.book = new Ledger({
      hooks: parts.stack.hooks,
      callId: (step, index) => this.#callId(step, index),
      earlier: options.ledger,
    })
    this.shadows = parts.stack.hasShadows ? new Shadows(this.book, effects.emit) : undefined
    const cancellable = options.cancellable ?? true
    this.deadline = new RunDeadline(effects.signal, cancellable)
    this.outstanding = new Outstanding(effects.signal, cancellable)
  }

  /** The run of an agent inside this one. */
  child(...how: ConstructorParameters<typeof RunContext>): RunContext {
    return new RunContext(...how)
  }

  get spent(): Usage {
    const inFlight = this.open?.inFlight ?? noTokens
    return inFlight === noTokens ? this.spentBefore : addUsage(this.spentBefore, inFlight)
  }
  /** What was spent without the model call under way. */
  get spentBefore(): Usage {
    const { open } = this
    if (!this.opened) return noUsage
    if (open === undefined || open.unbilled === noUsage) return this.execution.usage
    return addUsage(this.execution.usage, open.unbilled)
  }
  get now(): number {
    return this.effects.now()
  }
  get above(): Family['above'] | undefined {
    return this.family?.above
  }
  get toModel(): ToModel {
    return this.parts.toModel
  }
  get signal(): AbortSignal {
    return this.effects.signal
  }
  get cancelled(): boolean {
    this.noticeCancel()
    return this.#cancelled
  }
  get ledger(): List<LedgerEntry> {
    return this.book.entries
  }
  get watchedLedger(): List<LedgerEntry> {
    return this.book.timedEntries
  }
  get step(): number {
    return this.open?.index ?? (this.opened ? this.state.stepCount : 0)
  }
  get place(): string {
    if (this.open !== undefined) return (this.open.place ??= `${this.execution.id}/${this.open.index}`)
    if (!this.opened) return `${this.state.agentId}/${this.state.executionCount}/input`
    return `${this.execution.id}/${this.state.stepCount}`
  }

  note({ plan, callIndex }: LedgerPlace, hook: LedgerHook, durationMs: number, what?: Partial<LedgerEntry>): void {
    this.book.note(this.step, plan.number, hook.index, callIndex, durationMs)
    if (what !== undefined) this.book.explainLast(what)
    if (this.effects.emit !== undefined) this.effects.emit({ type: 'hook', entry: this.book.last() })
  }

  /** What the loop itself had to do, as an entry of its own. */
  noteLoop(trigger: HookTrigger, what: Partial<LedgerEntry>): void {
    const place = { plan: this.parts.stack.plan(trigger), callIndex: undefined }
    this.note(place, { name: 'hookloop', mode: 'loop' }, 0, what)
  }

  /** Counts what a hook or a tool has spent on models of its own. */
  spend(usage: TokenUsage): void {
    if (!this.opened) this.spentEarly = addTokens(this.spentEarly, usage)
    else if (this.open !== undefined) this.open.unbilled = addUsage(this.open.unbilled, usage)
    else this.updateExecution({ usage: addUsage(this.execution.usage, usage) })
  }

  /** Bills the execution for what was spent since the open step was billed last. */
  billOpen(): void {
    if (this.open === undefined || this.open.unbilled === noUsage) return
    this.updateExecution({ usage: addUsage(this.execution.usage, this.open.unbilled) })
    this.open.unbilled = noUsage
  }

  asking(by: Asker): HookInference {
    return new HookCalls(this, by)
  }

  watch(hook: string, trigger: HookTrigger, work: PromiseLike<unknown>): void {
    this.outstanding.watch({ step: this.step, hook, trigger }, work, (entry) => this.book.noteLate(entry))
  }

  get execution(): Execution {
    return this.state.execution!
  }

  updateExecution(change: Partial<Execution>): void {
    this.replaceExecution({ ...this.execution, ...change })
  }

  replaceExecution(execution: Execution): void {
    this.state = AgentState.patch(this.state, { execution: Object.freeze(execution) })
  }

  /** Stores the state at a point from which the run can be resumed, if the run has a session. */
  checkpoint(phase: Checkpoint['phase']): void {
    this.effects.checkpoint?.({ phase, state: this.state, ledgerFrom: (index) => this.book.rowsSince(index) })
  }

  #callId(step: number, index: number): string | undefined {
    if (this.open?.index === step) return this.open.calls[index]?.id
    return this.state.execution?.steps.at(step)?.toolCalls[index]?.id
  }

  /**
   * Fires a trigger: hooks, guards, observers. State and votes are taken over. Answers at once when no hook is slow,
   * and with nothing when no hook is there.
   */
  fire(trigger: HookTrigger, facts: FactValues = {}, call?: CallPlace): Invocation | undefined | Promise<Invocation> {
    const plan = this.parts.stack.plan(trigger, call?.toolName)
    if (plan.empty && !plan.shadowed) return undefined
    const firing = new Invocation(this, plan, this.state, facts, call?.index)
    if (plan.empty) return this.shade(firing, plan)
    const changed = this.transform(firing, plan)
    return changed === undefined ? this.judge(firing, plan) : changed.then(() => this.judge(firing, plan))
  }

  /** What is left of a firing when there are only shadows: for the loop it has not happened. */
  shade(firing: Invocation, plan: Plan): undefined {
    void runTransforms(firing, plan.transforms)
    void runGuards(firing, plan.guards)
  }

  /** The first half of a firing: the hooks that change. */
  transform(firing: Invocation, plan: Plan): void | Promise<void> {
    const { draft } = firing
    try {
      const waiting = runTransforms(firing, plan.transforms)
      return waiting?.catch((thrown: unknown) => this.#repair(firing, plan, { draft, thrown }))
    } catch (thrown) {
      return this.#repair(firing, plan, { draft, thrown })
    }
  }

  /** The same without asking `onError`: for what happens before there is an execution to go on with. */
  transformOrThrow(firing: Invocation, plan: Plan): void | Promise<void> {
    return runTransforms(firing, plan.transforms)
  }

  /** The second half: guards on the value as it will be used, then observers. */
  judge(firing: Invocation, plan: Plan): Invocation | Promise<Invocation> {
    if (firing.failure === undefined && plan.guards.length > 0) {
      try {
        const waiting = runGuards(firing, plan.guards)
        if (waiting !== undefined) {
          return waiting.then(
            () => this.conclude(firing, plan),
            (fatal: unknown) => this.#concludeFatal(firing, plan, fatal),
          )
        }
      } catch (fatal) {
        return this.#concludeFatal(firing, plan, fatal)
      }
    }
    return this.conclude(firing, plan)
  }

  /**
   * Fires a trigger whose failures change nothing: a hook that throws is in the ledger, the others still have their say.
   * Guards fail closed as everywhere.
   */
  async fireQuietly(trigger: HookTrigger, facts: FactValues): Promise<Invocation> {
    const plan = this.parts.stack.plan(trigger)
    const firing = new Invocation(this, plan, this.state, facts)
    for (let from = 0; from <= plan.transforms.length;) {
      try {
        await runTransforms(firing, plan.transforms, from)
        break
      } catch (thrown) {
        if (thrown instanceof HookFailure) {
          from = thrown.index + 1
        } else {
          if (this.execution.final === undefined) this.fail(toAgentError(thrown, 'HOOK_FAILED'), trigger)
          else this.noteLoop(trigger, { error: messageOf(thrown) })
          break
        }
      }
    }
    return this.judge(firing, plan)
  }

  /** Takes over what hooks made of the state and how they voted, and lets observers look. */
  conclude(firing: Invocation, plan: Plan): Invocation {
    if (firing.state !== this.state) this.#adopt(firing.state)
    if (firing.votes.length > 0 && firing.trigger !== 'onSubagentStop') this.cast(firing.votes) // those are about the child
    if (plan.observers.length > 0) {
      firing.update(this.state, usedFacts(firing))
      runObservers(firing, plan.observers)
    }
    return firing
  }

  /** Hooks write the conversation and the metadata; what the loop wrote into the execution meanwhile stays. */
  #adopt(state: AgentState): void {
    const { execution } = this.state
    this.state =
      execution === undefined || state.execution === execution ? state : AgentState.patch(state, { execution })
  }

  #concludeFatal(firing: Invocation, plan: Plan, fatal: unknown): Invocation {
    firing.failure = toAgentError(fatal, 'HOOK_FAILED')
    this.fail(firing.failure, firing.trigger)
    return this.conclude(firing, plan)
  }

  /** A hook failed: `onError` decides whether to try the trigger again, to go on without the hook, or to end. */
  async #repair(
    firing: Invocation,
    plan: Plan,
    from: { readonly draft: Draft; readonly thrown: unknown },
  ): Promise<void> {
    let { thrown } = from
    for (;;) {
      if (!(thrown instanceof HookFailure)) {
        firing.failure = toAgentError(thrown, 'HOOK_FAILED')
        this.fail(firing.failure, firing.trigger)
        return
      }
      if (this.cancelled || (thrown.error.code === 'MODEL_FORBIDDEN' && this.forbidden !== undefined)) {
        firing.failure = thrown.error // nobody is asked what to do about a hook that was cut off
        return
      }
      const done = stateChange(from.draft.state, firing.state)
      const next = await this.recover(thrown.error, firing.trigger)
      if (next === 'retry') firing.restart(this.state, from.draft.facts)
      else firing.update(applyChange(this.state, done), firing.facts)
      if (next === 'end' || (next === 'ignore' && givesUp.has(firing.trigger))) {
        firing.failure = thrown.error
        return
      }
      try {
        return await runTransforms(firing, plan.transforms, next === 'retry' ? 0 : thrown.index + 1)
      } catch (again) {
        thrown = again
      }
    }
  }

  cast(votes: readonly ContinuationEvaluation[]): void {
    if (!this.opened) return
    this.updateExecution({ votes: Object.freeze([...this.execution.votes, ...votes]) })
  }

  /** Whether anybody has forbidden the run to go on. */
  get forbidden(): ContinuationEvaluation | undefined {
    const { votes } = this.execution
    return votes.length === 0 ? undefined : votes.find((vote) => vote.decision === 'forbidContinuation')
  }

  /** Who says that nothing new may start, as of now: whoever forbade the run to go on, or the signal. */
  stoppedBy(): ContinuationEvaluation | undefined {
    this.noticeCancel()
    return this.forbidden
  }

  /** Looks whether the run was cancelled. Asked at fixed points only, so that a replay notices it at the same one. */
  noticeCancel(): void {
    if (this.#cancelled || !this.#wasCancelled()) return
    this.#cancelled = true
    this.cast([cancelledVote])
  }

  #wasCancelled(): boolean {
    try {
      return this.effects.cancelled()
    } catch (thrown) {
      if (this.failure === undefined)
        this.fail(toAgentError(thrown, 'HOOK_FAILED'), this.open === undefined ? 'beforeStep' : 'afterStep')
      return false
    }
  }

  /** Counts the votes that were cast since the last count, and clears them: none is ever stale. */
  count(): ContinuationOutcome {
    const { votes } = this.execution
    const outcome = countVotes(votes)
    if (votes.length > 0) this.updateExecution({ votes: Object.freeze([]) })
    return outcome
  }

  /** Asks the `onError` hooks what to do. Without an answer the run fails. */
  recover(error: AgentError, during: HookTrigger): Promise<'retry' | 'ignore' | 'end'> {
    return recover(this, error, during)
  }

  /** Ends the run as failed: no more steps, and the error is its result. */
  fail(error: AgentError, during: HookTrigger): void {
    if (isFatal(error)) this.remember(error, during)
    this.failure ??= error
    const { message } = error
    const source = `error at ${during}`
    this.cast([Object.freeze({ decision: 'forbidContinuation', reason: reasonOf(error), message, source })])
  }

  remember(error: AgentError, during: HookTrigger): ErrorRecord {
    const record = Object.freeze({ code: error.code, message: error.message, during })
    this.open?.errors.push(record)
    this.effects.emit?.({ type: 'error', error: record })
    return record
  }
}
