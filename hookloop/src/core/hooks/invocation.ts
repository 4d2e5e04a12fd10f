import type { AgentState } from '../state/agent-state.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { Json } from '../../values/json.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import type { Ask } from '../state/tool-call.ts'
import { addUsage, type Usage } from '../state/usage.ts'
import { AgentError } from '../../errors.ts'
import type { TimeLimit } from '../effects/effects.ts'
import type { EffectKey } from '../effects/keys.ts'
import type { BaseContext, Draft, FactValues, Mode, Origin, Recovery, Vote } from './base-context.ts'
import { changesBetween } from './changes.ts'
import type { CompactOptions } from './compaction.ts'
import type { HookHost } from './hook-host.ts'
import type { HookInference, InferOptions } from './infer.ts'
import type { Plan, PlannedHook } from './hook-plans.ts'
import type { HookTrigger } from './triggers.ts'

const noVotes: readonly Vote[] = Object.freeze([])
const none: readonly never[] = Object.freeze([])

type HookSignals = {
  /** Of hooks that have timed out, by turn. */
  readonly expired: Map<number, AbortSignal>
  /** Of the hook that is running. */
  current: { readonly controller: AbortController; readonly signal: AbortSignal } | undefined
}

/** One event at one trigger, from the first hook to the last observer: the current value and all decisions about it. */
export class Invocation implements Origin {
  readonly host: HookHost
  readonly plan: Plan
  /** The id of the tool call, at the tool triggers. */
  readonly call: string | undefined
  /** What the first hook receives. */
  readonly start: Draft
  draft: Draft
  votes: readonly ContinuationEvaluation[] = none
  asks: readonly Ask[] = none
  /** The questions that an `allow` answers. */
  defaultAsks: readonly Ask[] = none
  /** The hook that is running. */
  running: PlannedHook | undefined
  turn = 0
  /** When the last hook ended, if the next one starts right then. */
  mark = 0
  #context: BaseContext | undefined
  #mode: Mode | undefined
  /** The signals of hooks, once one was read or has aborted. */
  #signals: HookSignals | undefined

  // Declared only: most invocations have none of these, and a run creates four invocations for each step.
  declare blocked: { readonly by: string; readonly message: string } | undefined
  declare allowed: { readonly by: string; readonly message: string } | undefined
  declare recovery: (Recovery & { readonly by: string }) | undefined
  /** The time limit of the call, and the guard that set it. */
  declare within: { readonly ms: number; readonly by: string } | undefined
  /** How to compact the conversation, and the first hook that asked for it. */
  declare compaction: (CompactOptions & { readonly by: string }) | undefined
  /** Set when a hook failed and the value must not be used. */
  declare failure: AgentError | undefined
  /** The complete messages of hooks that failed, by name. The model gets less. */
  declare failures: Map<string, string> | undefined
  /** Outcomes of hooks with an effect: when the invocation is repeated, they are not run again. */
  declare performed: Map<string, Json> | undefined
  /** At `beforeToolUse`: whether the arguments are valid, for hooks that are typed by the tool. */
  declare fits: ((asked?: { readonly byShadow: boolean }) => boolean | Promise<boolean>) | undefined
  /** The model calls of the hook that is running. */
  declare inference: HookInference | undefined
  /** Model calls that hooks request when they cannot make one any more. */
  declare late: LateCalls | undefined

  constructor(host: HookHost, plan: Plan, state: AgentState, facts: FactValues, call?: string) {
    this.host = host
    this.plan = plan
    this.call = call
    this.start = { state, facts, votes: noVotes, verdict: undefined, recovery: undefined }
    this.draft = this.start
  }

  get trigger(): HookTrigger {
    return this.plan.trigger
  }

  get state(): AgentState {
    return this.draft.state
  }

  get facts(): FactValues {
    return this.draft.facts
  }

  get forbidden(): ContinuationEvaluation | undefined {
    return this.votes.find((vote) => vote.decision === 'forbidContinuation')
  }

  get spent(): Usage {
    const { inference, host } = this
    return inference === undefined ? host.spent : addUsage(host.spent, inference.spent)
  }

  async infer(options: InferOptions, turn: number): Promise<unknown> {
    const { running, host } = this
    const isLate = running === undefined || turn !== this.turn
    if ((isLate || host.checkEnd() !== undefined) && (this.late ??= new LateCalls()).isTooMany()) return neverEnds()
    if (isLate) throw misused('the hook has ended. Await the call in the hook')
    if (running.effect) {
      throw misused('a hook with effect: true is recorded as one effect. Remove effect, or split it into two hooks')
    }
    if (host.inferFor === undefined) {
      throw misused('a hook in shadow mode, or one that checks a streamed answer, cannot call a model')
    }
    const { name, mode } = running
    this.inference ??= host.inferFor({ hook: name, mode, trigger: this.trigger, call: this.call, place: host.place })
    return this.inference.infer(options)
  }

  signalFor(turn: number): AbortSignal {
    const { running, host } = this
    const expired = this.#signals?.expired.get(turn)
    if (expired !== undefined) return expired
    if (turn !== this.turn || running === undefined || timeLimitOf(running) === Infinity) return host.signal
    this.#signals ??= { expired: new Map(), current: undefined }
    if (this.#signals.current === undefined) {
      const controller = new AbortController()
      this.#signals.current = { controller, signal: AbortSignal.any([host.signal, controller.signal]) }
    }
    return this.#signals.current.signal
  }

  /** A copy in which the hook has a signal of its own, also while other hooks run. */
  copyFor(hook: PlannedHook): Invocation {
    const copy = new Invocation(this.host, this.plan, this.state, this.facts, this.call)
    copy.running = hook
    return copy
  }

  /** Aborts the signal of the current hook, whose time is over, and returns the error. */
  abort(error: AgentError): AgentError {
    this.#signals ??= { expired: new Map(), current: undefined }
    const { expired, current } = this.#signals
    current?.controller.abort(error)
    expired.set(this.turn, current?.signal ?? AbortSignal.abort(error))
    return error
  }

  /** Call when a hook that was not awaited has ended. */
  endHook(): void {
    this.running = undefined
    if (this.#signals?.current === undefined) return
    this.turn++ // the next hook gets a signal of its own
    this.#forgetHook()
  }

  #forgetHook(): void {
    this.#context = undefined
    if (this.#signals !== undefined) this.#signals.current = undefined
  }

  /** Call when a hook that was awaited has ended or timed out. */
  endTurn(end: 'returned' | 'threw' | 'timedOut'): void | Promise<void> {
    const { inference } = this
    this.running = undefined
    if (end === 'returned' && inference === undefined && this.#signals?.current === undefined) return undefined
    this.turn++
    this.inference = undefined
    this.#forgetHook()
    return inference?.close(end)
  }

  /** The key of an effect that a hook performs in this invocation. */
  keyFor(kind: EffectKey['kind'], hook: string, n: string): EffectKey {
    const { effects, step, place } = this.host
    const { call, trigger } = this
    return effects.keyOf({ step, kind, call, trigger, hook, n: place === undefined ? n : `${place} ${n}` })
  }

  /** The context for the next hook. It is the same object as long as nothing changes. */
  context(mode: Mode): BaseContext {
    if (this.#context === undefined || this.#mode !== mode) {
      this.#context = new this.plan.contexts[mode](this, this.draft)
      this.#mode = mode
    }
    return this.#context
  }

  /** Starts again from the first hook and drops all decisions except a forbid, which is final. */
  restart(state: AgentState, facts: FactValues): void {
    this.votes = this.votes.filter((vote) => vote.decision === 'forbidContinuation')
    this.asks = none
    this.defaultAsks = none
    this.blocked = undefined
    this.allowed = undefined
    this.recovery = undefined
    this.compaction = undefined
    this.update(state, facts)
  }

  /** Continues with other values, and without the decisions of the previous hook. */
  update(state: AgentState, facts: FactValues): void {
    this.draft = { state, facts, votes: noVotes, verdict: undefined, recovery: undefined }
    this.#context = undefined
  }
}

const MAX_LATE_CALLS = 100

/**
 * Counts the calls of a hook whose time is over. Each of them fails at once, so a hook that tries again until it succeeds would
 * block the process: no timer could end it.
 */
export class LateCalls {
  #count = 0

  isTooMany(): boolean {
    return ++this.#count > MAX_LATE_CALLS
  }
}

/** What a call beyond that returns: the hook waits for ever, and is left behind. */
export function neverEnds(): Promise<never> {
  return new Promise(() => undefined)
}

const GUARD_TIMEOUT_MS = 60_000

/** How long a handler may take. */
function timeLimitOf({ timeoutMs, action, mode }: PlannedHook): number {
  return timeoutMs ?? action?.timeoutMs ?? (mode === 'guard' ? GUARD_TIMEOUT_MS : Infinity)
}

/** How long a handler is waited for. An action that limits itself, such as a command, ends in its own way. */
export function enforcedLimitOf(hook: PlannedHook): number {
  return hook.action?.limitsItself === true ? Infinity : timeLimitOf(hook)
}

/** The time limit of a hook in an invocation. */
export class HookLimit implements TimeLimit {
  readonly ms: number
  readonly key: EffectKey
  readonly #invocation: Invocation

  constructor(invocation: Invocation, hook: PlannedHook) {
    this.ms = enforcedLimitOf(hook)
    this.key = invocation.keyFor('timeout', hook.name, '') // counted for each hook: not every one runs in every invocation
    this.#invocation = invocation
  }

  abort(error: AgentError): void {
    this.#invocation.abort(error)
  }
}

function misused(why: string): AgentError {
  return new AgentError('HOOK_FAILED', `ctx.infer() cannot be used here: ${why}.`)
}

/** What a hook decided and changed, for its entry in the ledger. */
export function opinionOf(
  { mode, action }: PlannedHook,
  before: Draft,
  after: Draft,
  isLast: boolean,
): Partial<LedgerEntry> {
  const changes = mode === 'transform' ? changesBetween(before, after, isLast) : []
  return {
    ...(action !== undefined && after.spent !== undefined && { value: { spent: after.spent } }),
    ...decisionOf(after),
    ...(after.warnings !== undefined && { warnings: after.warnings }),
    ...(after.decidedAt !== undefined && { definedAt: after.decidedAt }),
    ...(changes.length > 0 && { changes }),
  }
}

function decisionOf({ verdict, votes, recovery, compact }: Draft): Partial<LedgerEntry> {
  const vote = votes.find((each) => each.decision === 'forbidContinuation') ?? votes[0]
  const cast = votes.map((each) => each.decision)
  const decisions = [verdict?.decision, ...cast, recovery?.decision, compact && 'compact'].filter(Boolean)
  if (decisions.length === 0) return {}
  const message = verdict?.message ?? vote?.message
  return {
    decision: decisions.join('+'),
    ...(message !== undefined && { message }),
    ...(vote?.value !== undefined && { value: vote.value }),
  }
}
