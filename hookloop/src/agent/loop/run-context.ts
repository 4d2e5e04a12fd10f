import type { AskTrigger } from '../../state/tool-call.ts'
import { AgentState } from '../../state/agent-state.ts'
import { countVotes, type ContinuationEvaluation, type ContinuationOutcome } from '../../state/continuation.ts'
import { lastStepOf } from '../../state/execution.ts'
import type { ErrorRecord, Execution, FinalRecord, FinalStatus } from '../../state/execution.ts'
import type { ToModel } from '../../state/inference.ts'
import { saysSomething, type LedgerEntry, type LedgerRow, type TimedLedgerEntry } from '../../state/ledger.ts'
import type { List } from '../../state/list.ts'
import { addTokens, addUsage, noTokens, noUsage, type TokenUsage, type Usage } from '../../state/usage.ts'
import type { Checkpoint, Effects } from '../../effects/effects.ts'
import type { RunEnd } from '../../effects/run-time.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import type { HookHost, LedgerHook, LedgerPlace, ShadowLog } from '../../hooks/hook-host.ts'
import type { HookInference, InferringHook } from '../../hooks/infer.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { errorOpinion } from '../../hooks/failure-text.ts'
import { isFatal, notStored } from '../../hooks/run-hooks.ts'
import { runShadow } from '../../hooks/run-shadow.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { Budget } from '../capability.ts'
import { LedgerWriter } from '../explain/ledger-writer.ts'
import { HookModelCalls } from '../model/hook-infer.ts'
import type { ChildRuns, ParentLink } from '../subagents/parent-link.ts'
import type { OpenStep } from './open-step.ts'
import { BackgroundWork } from './background-work.ts'
import { cancelVote } from './cancel-vote.ts'
import { limitVote } from './time-limit.ts'

/** Sees every invocation of a run and of the subagents in it. Replays use it to ask other hooks about the same events. */
export type RunWitness = {
  /** The parts that the run of a subagent gets instead of its own. */
  readonly childParts: (parts: AgentParts) => AgentParts
  readonly checkpointed?: (run: RunContext, phase: Checkpoint['phase']) => void
  /** Before the first hook; `changes` is false when only guards run again. */
  readonly started?: (run: RunContext, invocation: Invocation, changes: boolean) => void
  /** After the last transform. */
  readonly changed?: (invocation: Invocation) => void
  /** After `onError` has decided about a hook that failed. */
  readonly recovered?: (run: RunContext, invocation: Invocation, error: AgentError, next: Recovered) => void
  /** After the last guard, before its state and votes are adopted; the returned function is called after that. */
  readonly decided?: (run: RunContext, invocation: Invocation, failure?: AgentError) => () => void
}

export type Recovered = 'retry' | 'ignore' | 'end'

export type RunContextOptions = {
  /** Called between steps; true pauses the run there. */
  readonly shouldPause?: ((state: AgentState) => Promise<boolean>) | undefined
  /** Whether answers are emitted while they are written. */
  readonly streams?: boolean
  readonly ledger?: Iterable<TimedLedgerEntry | LedgerRow>
  readonly parentLink?: ParentLink
  readonly witness?: RunWitness | undefined
  /** The session that it runs in. */
  readonly session?: string
  /** The id that the caller gave the input. */
  readonly turn?: string | undefined
  /** Whether the caller starts over if the run differs from what was recorded. Hooks do not get its end then. */
  readonly isTentative?: boolean
}

const none: readonly never[] = Object.freeze([])

/** The mutable side of one run: its state, the open step, the votes, the ledger, and the error that ended it. */
export class RunContext implements HookHost {
  readonly parts: AgentParts
  readonly effects: Effects
  state: AgentState
  open: OpenStep | undefined
  /** The first error that ended the run, if one did. */
  failure: AgentError | undefined
  /** The typed answer, once it is read. */
  output: { readonly value: unknown } | undefined
  /** A trigger whose question was approved before the run was resumed: it fires again, and does not ask again. */
  approved: AskTrigger | undefined
  /** Requests for another step that has not been taken yet. */
  requested: readonly ContinuationEvaluation[] = []
  /** Whether this run has an execution. Until then, the state may still show an earlier one. */
  hasExecution = false
  readonly shouldPause: RunContextOptions['shouldPause']
  readonly streams: boolean
  /** In a subagent: its connection to the run that it is part of. */
  readonly parentLink: ParentLink | undefined
  /** Starts and resumes the runs of subagents. Set when the run starts. */
  childRuns: ChildRuns<RunContext> | undefined
  /** When another process resumed the run, if one did since its last checkpoint. */
  resumedAt = 0
  /** When another process resumed the run, if it had no checkpoint. Only limits on time use it: a replay does not know it. */
  liveFrom = 0
  /** What was spent before there was an execution to bill. */
  spentEarly = noTokens
  readonly ledgerWriter: LedgerWriter
  readonly shadows: ShadowLog | undefined
  readonly witness: RunWitness | undefined
  readonly session: string | undefined
  readonly turn: string | undefined
  /** Observers and shadow hooks that are still running, once there were any. */
  background: BackgroundWork | undefined
  #ended: RunEnd | undefined
  #hasVotedToEnd = false
  /** Work that did not stop at the time limit of the run, and may still be running. */
  left: readonly string[] = none
  readonly #isTentative: boolean

  constructor(parts: AgentParts, effects: Effects, state: AgentState, options: RunContextOptions = {}) {
    this.parts = parts
    this.effects = effects
    this.state = state
    this.shouldPause = options.shouldPause
    this.streams = options.streams ?? false
    this.parentLink = options.parentLink
    this.witness = options.witness
    this.session = options.session
    this.turn = options.turn
    this.#isTentative = options.isTentative ?? false
    this.ledgerWriter = new LedgerWriter({
      hooks: parts.stack.hooks,
      callId: (step, index) => this.#callId(step, index),
      earlier: options.ledger,
    })
    this.shadows = parts.stack.hasShadows ? this.#shadowLog() : undefined
  }

  /**
   * Sets when running work is aborted: at the earliest of the limits of the run and of its ancestors. Call when the time
   * that the run has worked or waited is known or has changed.
   */
  setDeadline(): void {
    const { budgets } = this.parts
    const begun = this.hasExecution ? this.execution.startedAt + this.execution.waitedMs : this.now
    const start = Math.max(begun, this.liveFrom)
    let [first, limit]: [number, Budget['time']] = [Infinity, undefined]
    for (let level = 0; level < budgets.length; level++) {
      const { time } = budgets[level]!
      if (time === undefined) continue
      const at = start + time.ms - (this.ancestors?.[level]?.workedMs ?? 0)
      if (at < first) [first, limit] = [at, time]
    }
    if (limit !== undefined) this.effects.time.setDeadline(first, limit)
  }

  /** Adds time spent waiting for an approver, which limits on time do not count. */
  addWaited(ms: number): void {
    if (ms <= 0) return
    this.updateExecution({ waitedMs: this.execution.waitedMs + ms })
    this.setDeadline()
  }

  /** Whether the run has ended because it differs from what was recorded, and the caller starts over. */
  get isAbandoned(): boolean {
    return this.#isTentative && this.failure?.code === 'REPLAY_DIVERGED'
  }

  get spent(): Usage {
    const inFlight = this.open?.inFlight ?? noTokens
    return inFlight === noTokens ? this.spentBefore : addUsage(this.spentBefore, inFlight)
  }
  /** What was spent without the current model call. */
  get spentBefore(): Usage {
    const { open } = this
    if (!this.hasExecution) return noUsage
    const { usage } = this.execution
    return open === undefined || open.isBilled ? usage : open.addUnbilled(usage)
  }
  get now(): number {
    return this.effects.now()
  }
  get ancestors(): ParentLink['ancestors'] | undefined {
    return this.parentLink?.ancestors
  }
  get conversation(): string {
    return this.parentLink?.conversation ?? this.state.agentId
  }
  get toModel(): ToModel {
    return this.parts.toModel
  }
  get signal(): AbortSignal {
    return this.effects.signal
  }
  /** Why the run must end, if it must: it was cancelled, or its time is over. Reading it makes the run stop. */
  get ended(): RunEnd | undefined {
    this.#notice()
    if (this.#ended !== undefined) this.#voteToEnd(this.#ended)
    return this.#ended
  }
  get ledger(): List<LedgerEntry> {
    return this.ledgerWriter.entries
  }
  get timedLedger(): List<LedgerEntry> {
    return this.ledgerWriter.timedEntries
  }
  get step(): number {
    return this.open?.index ?? (this.hasExecution ? this.state.stepCount : 0)
  }
  /** The step in progress, or the last one. */
  get lastStep(): number {
    return this.open?.index ?? (this.hasExecution ? lastStepOf(this.execution) : 0)
  }
  get place(): string {
    if (this.open !== undefined) return this.open.place
    if (!this.hasExecution) return `${this.state.agentId}/${this.state.executionCount}/input`
    return `${this.execution.id}/${this.state.stepCount}`
  }

  note(at: LedgerPlace, hook: LedgerHook, durationMs: number, what?: Partial<LedgerEntry>): void {
    this.#noteAt(this.step, at, hook, durationMs, what)
  }

  #noteAt(
    step: number,
    { plan, callIndex }: LedgerPlace,
    { index }: LedgerHook,
    durationMs: number,
    what: Partial<LedgerEntry> | undefined,
  ): void {
    this.ledgerWriter.note(step, plan.number, index, callIndex, durationMs)
    if (what !== undefined) this.ledgerWriter.explainLast(what)
    const { emit } = this.effects
    if (emit === undefined || what === undefined || !saysSomething(what)) return
    emit({ type: 'hook', step, at: this.now, entry: this.ledgerWriter.last() })
    for (const warning of what.warnings ?? []) emit({ type: 'warning', step, at: this.now, ...warning })
  }

  #shadowLog(): ShadowLog {
    return {
      run: runShadow,
      note: (at, hook, durationMs, what) => this.#noteAt(at.step, at, hook, durationMs, what),
      follow: (work, giveUp) => (this.background ??= new BackgroundWork()).follow(work, giveUp),
    }
  }

  /** Adds an entry about something that the loop itself did. */
  noteLoop(trigger: HookTrigger, what: Partial<LedgerEntry>): void {
    const place = { plan: this.parts.stack.plan(trigger), callIndex: undefined }
    this.note(place, { name: 'hookloop', mode: 'loop' }, 0, what)
  }

  /** Adds what hooks did inside a call that has ended. */
  noteTrail(entries: readonly LedgerEntry[], durations: readonly number[]): void {
    const { stack } = this.parts
    for (const [i, { trigger, hook, mode, ...what }] of entries.entries()) {
      const known = stack.hooks.find((each) => each.name === hook)
      if (known === undefined && what.shadow === true) continue // recorded with an agent that still had this shadow
      const place = { plan: stack.plan(trigger as HookTrigger), callIndex: undefined }
      this.note(place, known ?? { name: hook, mode }, durations[i] ?? 0, what)
    }
  }

  watch(hook: string, trigger: HookTrigger, work: PromiseLike<unknown>): void {
    const { step } = this
    const started = performance.now()
    this.background ??= new BackgroundWork()
    this.background.watch(work, (error) => {
      const durationMs = performance.now() - started
      this.ledgerWriter.noteLate({ step, hook, trigger, mode: 'observe', ...errorOpinion(error), durationMs })
    })
  }

  inferFor(hook: InferringHook): HookInference {
    return new HookModelCalls(this, hook)
  }

  /** Counts what a hook or a tool has spent on models of its own. */
  spend(usage: TokenUsage): void {
    if (!this.hasExecution) this.spentEarly = addTokens(this.spentEarly, usage)
    else if (this.open !== undefined) this.open.count(usage)
    else this.updateExecution({ usage: addUsage(this.execution.usage, usage) })
  }

  /** Bills the execution for what was spent since the open step was billed last. */
  billOpen(): void {
    if (this.open === undefined || this.open.isBilled) return
    this.updateExecution({ usage: this.open.addUnbilled(this.execution.usage) })
    this.open.setBilled()
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

  /** Adopts a state from hooks. They write the conversation and the metadata; only the loop writes the execution. */
  adoptState(state: AgentState): void {
    const { execution } = this.state
    this.state =
      execution === undefined || state.execution === execution ? state : AgentState.patch(state, { execution })
  }

  /** Stores the state as a point from which the run can be resumed, if it runs in a session. */
  checkpoint(phase: Checkpoint['phase'], final?: FinalRecord): void {
    const ledgerFrom: Checkpoint['ledgerFrom'] = (index) => this.ledgerWriter.rowsSince(index)
    this.effects.checkpoint?.({ phase, state: this.state, final, ledgerFrom })
    this.witness?.checkpointed?.(this, phase)
  }

  #callId(step: number, index: number): string | undefined {
    if (this.open?.index === step) return this.open.calls[index]?.id
    return this.state.execution?.steps.at(step)?.toolCalls[index]?.id
  }

  cast(votes: readonly ContinuationEvaluation[]): void {
    if (!this.hasExecution) return
    this.updateExecution({ votes: Object.freeze([...this.execution.votes, ...votes]) })
  }

  /** The vote that forbids the run to continue, if there is one. */
  get forbidden(): ContinuationEvaluation | undefined {
    const { votes } = this.execution
    return votes.length === 0 ? undefined : votes.find((vote) => vote.decision === 'forbidContinuation')
  }

  /** Why nothing new may start now: the vote that forbids it, the cancellation, or the time limit. */
  stoppedBy(): ContinuationEvaluation | undefined {
    void this.ended
    return this.forbidden
  }

  /** Checks for cancellation only: an answer that arrives with the end of the time is still used. */
  noticeCancel(): void {
    this.#notice()
    if (this.#ended === 'cancel') this.#voteToEnd('cancel')
  }

  /** Checks whether the run must end. Called at fixed points only, so that a replay notices it at the same one. */
  #notice(): void {
    if (this.#ended !== undefined) return
    try {
      this.#ended = this.effects.ended()
    } catch (thrown) {
      const during = this.open === undefined ? 'beforeStep' : 'afterStep'
      if (this.failure === undefined) this.fail(toAgentError(thrown, 'HOOK_FAILED'), during)
    }
  }

  #voteToEnd(end: RunEnd): void {
    if (this.#hasVotedToEnd || !this.hasExecution) return
    this.#hasVotedToEnd = true
    if (end === 'limit' && this.forbidden?.reason === 'timeLimit') return // a guard was faster
    const { time } = this.effects
    this.cast([end === 'cancel' ? cancelVote(time.stopRequest()) : limitVote(time, this.now)])
  }

  leave(what: string): void {
    this.left = [...this.left, what]
  }

  /** Counts the votes since the last count, and clears them. */
  count(): ContinuationOutcome {
    const { votes } = this.execution
    const outcome = countVotes(votes)
    if (votes.length > 0) this.updateExecution({ votes: Object.freeze([]) })
    return outcome
  }

  /** Ends the run as failed: no more steps, and the error is its result. */
  fail(error: AgentError, during: HookTrigger): void {
    if (isFatal(error)) this.recordError(error, during)
    this.failure ??= error
    const { message } = error
    const source = `error at ${during}`
    this.cast([Object.freeze({ decision: 'forbidContinuation', reason: reasonOf(error), message, source })])
  }

  recordError(error: AgentError, during: HookTrigger): ErrorRecord {
    const record = Object.freeze({ code: error.code, message: error.message, during })
    this.open?.errors.push(record)
    this.effects.emit?.({ type: 'error', step: this.step, at: this.now, error: record })
    return record
  }

  /** The status of a run that ends for this reason. */
  finalStatus(reason: FinalRecord['reason']): FinalStatus {
    if (this.failure !== undefined) return 'failed'
    if (reason === 'userRequested' && this.ended === 'cancel') return 'cancelled'
    return reason === 'completed' ? 'completed' : 'stopped'
  }
}

/** The stop reason of a run that ends with this error. */
export function reasonOf(error: AgentError): 'persistenceFailed' | 'errorForbade' {
  return notStored.has(error.code) ? 'persistenceFailed' : 'errorForbade'
}
