import type { AgentState } from '../state/agent-state.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { Ask } from '../state/tool-call.ts'
import { addUsage, type Usage } from '../state/usage.ts'
import { AgentError } from '../errors.ts'
import type { HookInference, InferOptions } from './infer.ts'
import type { CompactOptions } from './compaction.ts'
import type { BaseContext, Draft, FactValues, HookHost, Mode, Origin, Recovery, Vote } from './base-context.ts'
import type { HookOutcome } from './outcome.ts'
import type { Plan, StackedHook } from './stack.ts'
import type { HookTrigger } from './triggers.ts'

const noVotes: readonly Vote[] = Object.freeze([])
const none: readonly never[] = Object.freeze([])

/**
 * One event at one trigger, from the first hook to the last observer: the value as it stands and everything that was
 * decided. It lives as long as the firing and is never written down.
 */
export class Invocation implements Origin {
  readonly host: HookHost
  readonly plan: Plan
  /** The tool call this is about, as a place for keys. */
  readonly callIndex: number | undefined
  /** What the first hook is given. */
  readonly start: Draft
  draft: Draft
  votes: readonly ContinuationEvaluation[] = none
  asks: readonly Ask[] = none
  blocked: { readonly by: string; readonly message: string } | undefined
  allowed: { readonly by: string; readonly message: string } | undefined
  recovery: (Recovery & { readonly by: string }) | undefined
  /** How long the call may take, and who says so. */
  within: { readonly ms: number; readonly by: string } | undefined
  /** How the conversation is to be made shorter, and who asked first. */
  compaction: (CompactOptions & { readonly by: string }) | undefined
  /** Set when a hook failed and the value must not be used. */
  failure: AgentError | undefined
  /** What hooks with an effect did in this firing: when it is tried again, they are not. */
  performed: Map<string, HookOutcome> | undefined
  /** At `beforeToolUse`: whether the arguments fit the tool, for hooks that are typed by it. */
  fits: ((asked?: { readonly byShadow: boolean }) => boolean | Promise<boolean>) | undefined
  /** The hook that runs, and what it asks of models. */
  running: StackedHook | undefined
  asking: HookInference | undefined
  turn = 0
  /** When the last hook ended, if the next one begins right then. */
  mark = 0
  #context: BaseContext | undefined
  #mode: Mode | undefined

  constructor(host: HookHost, plan: Plan, state: AgentState, facts: FactValues, callIndex?: number) {
    this.host = host
    this.plan = plan
    this.callIndex = callIndex
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

  get forbidden(): boolean {
    return this.votes.some((vote) => vote.decision === 'forbidContinuation')
  }

  get spent(): Usage {
    const { asking, host } = this
    return asking === undefined ? host.spent : addUsage(host.spent, asking.spent)
  }

  async infer(asked: InferOptions, turn: number): Promise<unknown> {
    const { running, host } = this
    if (running === undefined || turn !== this.turn) throw misused('it asks a model after it has ended. Await it')
    if (running.effect) {
      throw misused('with effect: true it is recorded as a whole. Leave that out, or make it two hooks')
    }
    if (host.asking === undefined) throw misused('no model can be asked by a shadow, or about an unfinished answer')
    const { name, mode } = running
    this.asking ??= host.asking({ hook: name, mode, trigger: this.trigger, key: this.keyFor(name) })
    return this.asking.infer(asked)
  }

  /** A hook that was waited for has ended, or nobody waits for it any more. */
  endTurn(how: 'returned' | 'threw' | 'timedOut'): void | Promise<void> {
    const { asking } = this
    this.turn++
    this.running = undefined
    this.asking = undefined
    this.#context = undefined
    return asking?.close(how)
  }

  startOfHook(): number {
    const { mark } = this
    this.mark = 0
    return mark === 0 ? performance.now() : mark
  }

  /** The key of an effect that a hook performs in this firing. */
  keyFor(hook: string): string {
    const call = this.callIndex === undefined ? '' : `/${this.callIndex}`
    return `${this.host.place}${call}/${this.trigger}/${hook}`
  }

  /** The context for the next hook. It is the same object as long as nothing changes. */
  context(mode: Mode): BaseContext {
    if (this.#context === undefined || this.#mode !== mode) {
      this.#context = new this.plan.contexts[mode](this, this.draft)
      this.#mode = mode
    }
    return this.#context
  }

  /** Begins again from the first hook, as if none had decided anything, but for a forbid, which cannot be taken back. */
  restart(state: AgentState, facts: FactValues): void {
    this.votes = this.votes.filter((vote) => vote.decision === 'forbidContinuation')
    this.asks = none
    this.blocked = undefined
    this.allowed = undefined
    this.recovery = undefined
    this.compaction = undefined
    this.update(state, facts)
  }

  /** Goes on with other values, and without the decisions of the hook before. */
  update(state: AgentState, facts: FactValues): void {
    this.draft = { state, facts, votes: noVotes, verdict: undefined, recovery: undefined }
    this.#context = undefined
  }
}

function misused(why: string): AgentError {
  return new AgentError('HOOK_FAILED', `ctx.infer() cannot be used here: ${why}.`)
}
