import { AgentState } from '../state/agent-state.ts'
import { countVotes, isForbid, type ContinuationEvaluation, type ContinuationOutcome } from '../state/continuation.ts'
import type { ErrorRecord, ExecutionFields, FinalRecord } from '../state/execution.ts'
import type { ToModel } from '../state/inference.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'
import type { Message } from '../state/message.ts'
import type { AgentPath, Above } from '../state/subagent.ts'
import { addTokens, addUsage, noTokens, noUsage, type Usage } from '../state/usage.ts'
import type { Effects } from '../effects/effects.ts'
import { cancelVote, earliestLimit, limitVote, newInputVote, type RunEnd } from '../effects/run-time.ts'
import type { AgentError } from '../../errors.ts'
import { errorOpinion } from '../hooks/failure-text.ts'
import type { HookHost, LedgerHook, LedgerPlace, ShadowLog } from '../hooks/hook-host.ts'
import type { HookInference, InferringHook } from '../hooks/infer.ts'
import { isFatal } from '../hooks/run-hooks.ts'
import { runShadow } from '../hooks/run-shadow.ts'
import type { HookTrigger } from '../hooks/triggers.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { HookModelCalls } from '../model/hook-infer.ts'
import type { OpenStep } from './open-step.ts'
import { BackgroundWork } from './background-work.ts'
import { Ledger, saysSomething } from './ledger.ts'
import { SerialQueue } from './serial-queue.ts'

export type RunContextOptions = {
  /** Called between steps; true pauses the run there. */
  readonly shouldPause?: ((state: AgentState) => Promise<boolean>) | undefined
  /** Whether answers are emitted while they are written. */
  readonly streams?: boolean
  readonly ledger?: readonly TimedLedgerEntry[]
  readonly parent?: ParentLink | undefined
  /** The session that it runs in. */
  readonly session?: string
  /** The id that the caller gave the input. */
  readonly turn?: string | undefined
}

/** The connection of a subagent to the run that it is part of. */
export type ParentLink = {
  /** Undefined if a hook has started it. */
  readonly run?: RunContext
  readonly path: AgentPath
  /** The id of the conversation of the root run. */
  readonly conversation: string
  /** What its ancestors had spent when it started, outermost first. */
  readonly ancestors: readonly Above[]
  /** Requests for approval, one at a time in the root run and all its subagents. */
  readonly approvals: SerialQueue
}

const none: readonly never[] = Object.freeze([])

/**
 * The mutable side of one run: its state, the open step, the votes, the ledger, and the error that ended it. It is made again
 * from the last checkpoint whenever a process continues the run.
 */
export class RunContext implements HookHost {
  readonly parts: AgentParts
  readonly effects: Effects
  #state: AgentState
  /** The execution of this run. Until its input is taken there is none, and the state may still show an earlier one. */
  #execution: ExecutionFields | undefined
  /** Whether no state has this execution yet: then it may still be written. */
  #isOpen = false
  /** Whether the state still has an earlier execution. */
  #isOutdated = false
  open: OpenStep | undefined
  /** The first error that ended the run, if one did. */
  failure: AgentError | undefined
  /** The typed answer, once it is read. */
  output: { readonly value: unknown } | undefined
  /** How it ended, if its input opened no execution. */
  blocked: FinalRecord | undefined
  readonly streams: boolean
  /** In a subagent: its connection to the run that it is part of. */
  readonly parent: ParentLink | undefined
  /** What was spent before there was an execution to bill. */
  spentEarly = noTokens
  /** Whether a step was closed since the last checkpoint. */
  hasClosed = false
  readonly ledgerOf: Ledger
  readonly shadows: ShadowLog | undefined
  /** Observers and shadow hooks that are still running, once there were any. */
  background: BackgroundWork | undefined
  /** Work that did not stop at the time limit of the run, and may still be running. */
  stillRunning: readonly string[] = none
  readonly approvals: SerialQueue
  /** Runs the loop of a subagent. Set when the run starts, because the loop calls tools, and tools start subagents. */
  drive: ((child: RunContext, input: Message) => Promise<FinalRecord>) | undefined
  readonly options: RunContextOptions
  readonly start: AgentState
  #hasVotedToEnd = false
  #earlyFailures = 0

  constructor(parts: AgentParts, effects: Effects, state: AgentState, options: RunContextOptions = {}) {
    this.parts = parts
    this.effects = effects
    this.#state = state
    this.load(state)
    this.options = options
    this.start = state
    this.streams = options.streams ?? false
    this.parent = options.parent
    this.approvals = options.parent?.approvals ?? new SerialQueue()
    this.drive = options.parent?.run?.drive
    this.ledgerOf = new Ledger(options.ledger)
    this.shadows = parts.plans.hasShadows ? this.#shadowLog() : undefined
  }

  /** The same run, again from its last checkpoint. */
  fromCheckpoint(state = this.base): RunContext {
    const { log } = this.effects.journal
    const effects = this.effects.fromCheckpoint()
    const from = isRunning(state) ? state : this.start
    return new RunContext(this.parts, effects, from, { ...this.options, ledger: log.ledger })
  }

  watch(hook: string, trigger: HookTrigger, work: PromiseLike<unknown>): void {
    const { step } = this
    const started = performance.now()
    this.background ??= new BackgroundWork()
    this.background.watch(work, (error) => {
      const durationMs = performance.now() - started
      const definedAt = this.parts.plans.hooks.find(({ name }) => name === hook)?.definedAt?.()
      const entry = { step, hook, trigger, mode: 'observe', ...errorOpinion(error), durationMs } as const
      this.ledgerOf.addLate({ ...entry, ...(definedAt !== undefined && { definedAt }) })
    })
  }

  #shadowLog(): ShadowLog {
    return {
      run: runShadow,
      note: (at, hook, durationMs, what) => {
        if (what !== undefined && saysSomething(what)) this.#noteAt(at.step, at, what, { hook, durationMs })
      },
      follow: (work, giveUp) => (this.background ??= new BackgroundWork()).follow(work, giveUp),
    }
  }

  inferFor(hook: InferringHook): HookInference {
    return new HookModelCalls(this, hook)
  }

  /** The state at the last checkpoint of this run, or when it started. */
  get base(): AgentState {
    const { state } = this.effects.scopeLog
    return state !== undefined && isRunning(state) ? state : this.start
  }

  get isRoot(): boolean {
    return this.effects.path.length === 0
  }

  /** Sets when running work is aborted, by the time that the run has worked and waited. */
  setDeadline(): void {
    const { time, journal } = this.effects
    const first = earliestLimit(this.parts.budgets, this.ancestors)
    if (first === undefined) return
    const { limit, before } = first
    const { now } = this
    time.setDeadline((askedUntil) => {
      const { startedAt, waitedMs } = this.#execution ?? { startedAt: now, waitedMs: 0 }
      return { at: startedAt + waitedMs + journal.log.waitedMs(startedAt, askedUntil) + limit.ms - before, limit }
    })
  }

  get workedMs(): number {
    if (this.#execution === undefined) return 0
    const { now } = this
    const { startedAt, waitedMs } = this.#execution
    const waited = waitedMs + this.effects.journal.log.waitedMs(startedAt, now)
    return Math.max(0, now - startedAt - waited) // a clock may be set back
  }

  get spent(): Usage {
    const usage = this.#execution?.usage ?? noUsage
    const inFlight = this.open?.inFlight ?? noTokens
    return inFlight === noTokens ? usage : addUsage(usage, inFlight)
  }

  get now(): number {
    return this.effects.now()
  }

  get ancestors(): readonly Above[] | undefined {
    return this.parent?.ancestors
  }

  get conversation(): string {
    return this.parent?.conversation ?? this.state.agentId
  }

  get ledger(): readonly LedgerEntry[] {
    return this.ledgerOf.untimed
  }

  get timedLedger(): readonly TimedLedgerEntry[] {
    return this.ledgerOf.inForce
  }

  get toModel(): ToModel {
    return this.parts.toModel
  }

  get signal(): AbortSignal {
    return this.effects.signal
  }

  /** Why the run must end, if it must: it was cancelled, or its time is over. Stops the run if so. */
  checkEnd(): RunEnd | undefined {
    const end = this.effects.checkEnd()
    if (end !== undefined) this.#voteToEnd(end)
    return end
  }

  get step(): number {
    return this.open?.index ?? this.#execution?.steps.length ?? 0
  }

  /** The step in progress, or the last one. */
  get lastStep(): number {
    return this.open?.index ?? Math.max(0, this.step - 1)
  }

  note(at: LedgerPlace, hook: LedgerHook, durationMs: number, what: Partial<LedgerEntry>): void {
    if (saysSomething(what)) this.#noteAt(this.step, at, what, { hook, durationMs })
  }

  #noteAt(step: number, at: LedgerPlace, what: Partial<LedgerEntry>, by?: Parameters<Ledger['note']>[2]): void {
    const { plan, call } = at
    const entry = this.ledgerOf.note({ step, trigger: plan.trigger, ...(call !== undefined && { call }) }, what, by)
    const { emit } = this.effects
    if (emit === undefined) return
    emit({ type: 'hook', step, at: this.now, entry })
    for (const warning of what.warnings ?? []) emit({ type: 'warning', step, at: this.now, ...warning })
  }

  /** Adds an entry about something that the loop itself did. */
  noteLoop(trigger: HookTrigger, what: Partial<LedgerEntry>): void {
    this.#noteAt(this.step, { plan: { trigger }, call: undefined }, what)
  }

  /** What hooks decide now about something that has begun. It is recorded and has no effect. */
  noteOverridden(trigger: HookTrigger, what: { by: string; decision: string; call?: string }): void {
    const { by, decision, call } = what
    const message = `"${by}" decided "${decision}", but this had begun before`
    this.noteLoop(trigger, { decision: 'overridden', message, value: decision, ...(call !== undefined && { call }) })
  }

  /** Adds what hooks did inside a call that has ended. */
  noteTrail(entries: readonly LedgerEntry[], durations: readonly number[]): void {
    for (const [i, { trigger, hook, mode, ...what }] of entries.entries()) {
      const known = this.parts.plans.hooks.find((each) => each.name === hook)
      if (known === undefined && what.shadow === true) continue // recorded with an agent that still had this shadow
      const place = { plan: { trigger: trigger as HookTrigger }, call: undefined }
      this.note(place, known ?? { name: hook, mode }, durations[i] ?? 0, what)
    }
  }

  /** Bills the execution. */
  spend(usage: Partial<Usage>): void {
    if (this.hasExecution) this.updateExecution({ usage: addUsage(this.execution.usage, usage) })
    else this.spentEarly = addTokens(this.spentEarly, { ...noTokens, ...usage })
  }

  /** Continues with a state and its execution, if it is one of this run. */
  load(state: AgentState, hasExecution = isRunning(state)): void {
    this.#state = state
    this.#execution = hasExecution ? AgentState.fieldsOf(state).execution : undefined
    this.#isOpen = false
    this.#isOutdated = false
  }

  /** The conversation and the metadata, which hooks write, with the execution, which only the loop writes. */
  get state(): AgentState {
    if (this.#isOutdated) {
      this.#state = AgentState.patch(this.#state, { execution: Object.freeze(this.#execution) })
      this.#isOpen = false
      this.#isOutdated = false
    }
    return this.#state
  }

  /** The execution stays as it is. */
  set state(state: AgentState) {
    if (state === this.#state) return
    this.#state = state
    this.#isOutdated = this.#execution !== undefined
  }

  get hasExecution(): boolean {
    return this.#execution !== undefined
  }

  get execution(): ExecutionFields {
    return this.#execution!
  }

  set execution(execution: ExecutionFields) {
    this.#execution = execution
    this.#isOpen = true
    this.#isOutdated = true
  }

  updateExecution(change: Partial<ExecutionFields>): void {
    if (this.#isOpen) Object.assign(this.execution, change)
    else this.execution = { ...this.execution, ...change }
  }

  cast(votes: readonly ContinuationEvaluation[]): void {
    if (this.hasExecution) this.updateExecution({ votes: Object.freeze([...this.execution.votes, ...votes]) })
  }

  /** The vote that forbids the run to continue, if there is one. */
  get forbidden(): ContinuationEvaluation | undefined {
    return this.#execution?.votes.find(isForbid)
  }

  /**
   * Why nothing new may begin, if that is so: the vote that forbids it, the cancellation, the time limit, new input, or the run
   * that it is part of. Call it before something begins, and not about what has begun.
   */
  stoppedBy(): ContinuationEvaluation | undefined {
    this.checkEnd()
    return this.#stop()
  }

  /** The same without a check whether the run must end: a subagent checks that itself. */
  #stop(): ContinuationEvaluation | undefined {
    if (this.isRoot && this.effects.journal.log.ends && this.forbidden === undefined) {
      this.effects.journal.setLive()
      this.cast([newInputVote])
    }
    const above = this.parent?.run && this.parent.run.#stop()
    if (above !== undefined && this.forbidden === undefined) this.cast([above])
    return this.forbidden ?? above
  }

  /** Checks for cancellation only: an answer that arrives with the end of the time is still used. */
  noticeCancel(): void {
    if (this.effects.checkEnd() === 'cancel') this.#voteToEnd('cancel')
  }

  #voteToEnd(end: RunEnd): void {
    if (this.#hasVotedToEnd || !this.hasExecution) return
    this.#hasVotedToEnd = true
    const { time } = this.effects
    if (end === 'limit' && this.forbidden?.reason === 'timeLimit') return // a guard was faster
    const { before = 0 } = earliestLimit(this.parts.budgets, this.ancestors) ?? {}
    this.cast([end === 'cancel' ? cancelVote(time.stopRequest()) : limitVote(time.limit, before + this.workedMs)])
  }

  noteStillRunning(what: string): void {
    this.stillRunning = [...this.stillRunning, what]
  }

  /** Counts the votes since the last count, after `earlier` ones, and clears them. */
  count(earlier: readonly ContinuationEvaluation[] = none): ContinuationOutcome {
    const { votes } = this.execution
    const outcome = countVotes(earlier.length === 0 ? votes : [...earlier, ...votes])
    if (votes.length > 0) this.updateExecution({ votes: Object.freeze([]) })
    return outcome
  }

  /** Ends the run as failed: a vote like others, so that what has begun is part of the conversation. */
  fail(error: AgentError, during: HookTrigger): void {
    if (this.#execution?.final !== undefined) return this.noteLoop(during, { error: error.message })
    if (isFatal(error)) this.recordError(error, during)
    this.failure ??= error
    const { message } = error
    const vote = {
      decision: 'forbidContinuation',
      reason: 'errorForbade',
      message,
      source: `error at ${during}`,
    } as const
    this.cast([Object.freeze(vote)])
  }

  /** Returns how many there were in a row. Hooks at `onPause` and `onResume` may fail before there is an execution. */
  countFailure(): number {
    if (!this.hasExecution) return ++this.#earlyFailures
    const failures = this.execution.failures + 1
    this.updateExecution({ failures })
    return failures
  }

  recordError(error: AgentError, during: HookTrigger): ErrorRecord {
    const record = Object.freeze({ code: error.code, message: error.message, during })
    this.open?.errors.push(record)
    this.effects.emit?.({ type: 'error', step: this.step, at: this.now, error: record })
    return record
  }
}

function isRunning(state: AgentState): boolean {
  return AgentState.fieldsOf(state).execution?.status === 'running'
}
