import type { AgentState } from '../state/agent-state.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import { workedMs } from '../state/execution.ts'
import type { ToModel } from '../state/inference.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import type { List } from '../state/list.ts'
import type { Above } from '../state/subagent.ts'
import { addTokens, addUsage, noTokens, toTokens, type TokenUsage, type Usage } from '../state/usage.ts'
import type { Effects } from '../effects/effects.ts'
import { AgentError } from '../errors.ts'
import type { Asker, HookInference, InferOptions } from './infer.ts'
import type { CompactOptions } from './compaction.ts'
import type { HookTrigger } from './triggers.ts'

export type Mode = 'transform' | 'guard' | 'observe'

/** What a firing needs from the run it happens in. */
export interface HookHost {
  readonly spent: Usage
  readonly now: number
  readonly signal: AbortSignal
  /** Whether the run was cancelled, as it notices now. */
  readonly cancelled: boolean
  readonly ledger: List<LedgerEntry>
  /** The ledger as observers see it, with the time each firing took. */
  readonly watchedLedger?: List<LedgerEntry>
  readonly effects: Effects
  readonly step: number
  /** Where in the run this is: the beginning of the key of every effect a hook performs. */
  readonly place: string
  /** In a subagent: what its ancestors count, the outermost first. */
  readonly above?: readonly Above[] | undefined
  /** Makes a model of whatever a hook names one by. */
  readonly toModel: ToModel
  /** Adds a firing to the ledger; `what` is missing when the hook had no opinion. */
  note(at: LedgerPlace, hook: LedgerHook, durationMs: number, what?: Partial<LedgerEntry>): void
  /** Takes care of an observer that goes on after the loop does. */
  watch(hook: string, trigger: HookTrigger, work: PromiseLike<unknown>): void
  /** Counts what a hook has spent. */
  spend(usage: TokenUsage): void
  /** Lets a hook ask models. Missing where none may be asked: a shadow, or a look at an answer that is not finished. */
  asking?(by: Asker): HookInference
  /** Where it is told what shadows would have done. Missing where nobody wants to know: there they do not run. */
  readonly shadows?: ShadowLog | undefined
}

export interface ShadowLog {
  /** Adds what a shadow would have done. */
  note(
    at: LedgerPlace & { readonly step: number },
    hook: LedgerHook,
    durationMs: number,
    what?: Partial<LedgerEntry>,
  ): void
  /** Takes care of one that has not answered yet. `giveUp` is called when nobody waits for it any more. */
  follow(work: Promise<void>, giveUp: () => void): void
}

/** Where a hook fired. */
export type LedgerPlace = {
  readonly plan: { readonly trigger: HookTrigger; readonly number: number }
  /** Which tool call of the step it was about, where it was about one. */
  readonly callIndex: number | undefined
}

/** As much of a hook as the ledger keeps. */
export type LedgerHook = { readonly name: string; readonly mode: LedgerEntry['mode']; readonly index?: number }

export type FactValues = { readonly [fact: string]: unknown }
export type Vote = Omit<ContinuationEvaluation, 'source'>
export type Verdict = { readonly decision: 'block' | 'ask' | 'allow'; readonly message: string | undefined }
export type Recovery = { readonly decision: 'retry' | 'ignore'; readonly afterMs: number }

/** What a context holds: the values as they are, and what the hook that has it has decided so far. */
export type Draft = {
  readonly state: AgentState
  readonly facts: FactValues
  readonly votes: readonly Vote[]
  readonly verdict: Verdict | undefined
  readonly recovery: Recovery | undefined
  /** What the hook itself has spent on models. */
  readonly spent?: TokenUsage | undefined
  /** How long the call may take. */
  readonly within?: number | undefined
  /** How the conversation is to be made shorter. */
  readonly compact?: CompactOptions | undefined
  /** In a subagent, which ancestor's hook is looking: it counts from there on. */
  readonly level?: number | undefined
}

/** What the contexts of one firing have in common; contexts with another origin are foreign. */
export interface Origin {
  readonly trigger: HookTrigger
  readonly host: HookHost
  /** What the run has spent, and the hook that runs. */
  readonly spent: Usage
  /** Counts the hooks that were waited for: what was given to an earlier one asks nobody any more. */
  readonly turn: number
  /** Asks a model for the hook that runs. */
  infer(asked: InferOptions, turn: number): Promise<unknown>
}

/** The run-time side of every context: getters over a draft nobody can reach, so that nothing can be written. */
export class BaseContext {
  readonly #origin: Origin
  readonly #draft: Draft
  readonly #turn: number

  constructor(origin: Origin, draft: Draft, turn = origin.turn) {
    this.#origin = origin
    this.#draft = draft
    this.#turn = turn
    Object.preventExtensions(this) // all guards of a firing share it
  }

  get trigger(): HookTrigger {
    return this.#origin.trigger
  }
  get state(): AgentState {
    return this.#draft.state
  }
  get spent(): Usage {
    const { level } = this.#draft
    const { spent, host } = this.#origin
    return level === undefined ? spent : addUsage(spent, host.above?.[level]?.usage ?? {})
  }
  get now(): number {
    return this.#origin.host.now
  }
  get signal(): AbortSignal {
    return this.#origin.host.signal
  }
  get ledger(): List<LedgerEntry> {
    return this.#origin.host.ledger
  }

  spend(usage: Partial<TokenUsage>): BaseContext {
    return BaseContext.change(this, { spent: addTokens(this.#draft.spent ?? noTokens, toTokens(usage)) })
  }

  static hostOf(context: BaseContext): HookHost {
    return context.#origin.host
  }

  static draftOf(context: BaseContext): Draft {
    return context.#draft
  }

  /** How long the run has been at work, from where the hook that looks began to count. */
  static workedMs(context: BaseContext): number {
    const { state, level } = context.#draft
    const { above, now } = context.#origin.host
    const own = state.execution === undefined ? 0 : workedMs(state.execution, now)
    return level === undefined ? own : own + (above?.[level]?.workedMs ?? 0)
  }

  /** A copy of a context with some of its draft changed. */
  static change(context: BaseContext, change: Partial<Draft>): BaseContext {
    return BaseContext.#copy(context, { ...context.#draft, ...change })
  }

  /** The same for how long the call may take, which a limit on time says before each: one spread takes a tenth of two. */
  static limit(context: BaseContext, within: number): BaseContext {
    return BaseContext.#copy(context, { ...context.#draft, within })
  }

  static #copy(context: BaseContext, draft: Draft): BaseContext {
    const Class = context.constructor as typeof BaseContext
    return new Class(context.#origin, draft, context.#turn)
  }

  static infer(context: BaseContext, asked: InferOptions): Promise<unknown> {
    const asking = context.#origin.infer(asked, context.#turn)
    asking.catch(() => undefined) // a hook that does not wait for it must not end the process
    return asking
  }

  /** The draft of what a handler returned, if it is a context of this firing; otherwise says in words what it is. */
  static accept(returned: unknown, origin: Origin): Draft {
    if (typeof returned === 'object' && returned !== null && #origin in returned) {
      if (returned.#origin === origin) return returned.#draft
      throw new AgentError(
        'HOOK_FOREIGN_CONTEXT',
        `It returned a context of another firing (${returned.#origin.trigger}). Return the context it was given, or a copy made with its methods.`,
        { value: returned.#origin.trigger },
      )
    }
    if (returned === undefined) {
      throw new AgentError(
        'HOOK_NO_RETURN',
        'It returned nothing. Return the context, changed or not: "return ctx" or "return ctx.block(…)".',
      )
    }
    throw new AgentError('HOOK_FOREIGN_CONTEXT', `It returned ${typeof returned} instead of a context.`, {
      value: returned,
    })
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { trigger: this.trigger, ...this.#draft.facts, state: this.state }
  }
}
