import type { AgentState } from '../state/agent-state.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import { describeValue } from '../../values/describe-value.ts'
import type { EntryWarning, LedgerEntry } from '../state/ledger.ts'
import { addTokens, addUsage, noTokens, spentTokens, type TokenUsage, type Usage } from '../state/usage.ts'
import { AgentError } from '../../errors.ts'
import type { WarningCode } from '../state/warning.ts'
import type { CompactOptions } from './compaction.ts'
import type { HookHost } from './hook-host.ts'
import type { InferOptions } from './infer.ts'
import type { HookTrigger } from './triggers.ts'

export type Mode = 'transform' | 'guard' | 'observe'

export type FactValues = { readonly [fact: string]: unknown }
/** What a hook votes on whether the run continues. */
export type Vote = Omit<ContinuationEvaluation, 'source'>
/** Options of `ctx.ask`. */
export type AskOptions = {
  /** No rule of the user is about the call, so the `allow` of another hook answers the question. Default: false. */
  readonly byDefault?: boolean
}
export type Verdict = AskOptions & {
  readonly decision: 'block' | 'ask' | 'allow'
  readonly message: string | undefined
}
export type Recovery = { readonly decision: 'retry' | 'ignore'; readonly afterMs: number }

/** The content of a context: the current values, and the decisions of the hook that has it. */
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
  /** How to compact the conversation. */
  readonly compact?: CompactOptions | undefined
  /** Problems that stopped nothing. */
  readonly warnings?: readonly EntryWarning[] | undefined
  /** Which file or script decided, if the hook runs several. */
  readonly decidedAt?: string | undefined
  /** In a subagent: the level of the ancestor that the hook comes from. It counts from there. */
  readonly level?: number | undefined
}

/** What the contexts of one invocation have in common. */
export interface Origin {
  readonly trigger: HookTrigger
  readonly host: HookHost
  /** What the run and the current hook have spent. */
  readonly spent: Usage
  /** Counts the hooks that were awaited: the context of an earlier one can no longer call models. */
  readonly turn: number
  /** The signal of the hook that got this turn: aborts when its time or that of the run is over. */
  signalFor(turn: number): AbortSignal
  /** Calls a model for the current hook. */
  infer(options: InferOptions, turn: number): Promise<unknown>
}

/** The base class of every context: getters over a private draft, so that a hook cannot write to it. */
export class BaseContext {
  readonly #origin: Origin
  readonly #draft: Draft
  readonly #turn: number

  constructor(origin: Origin, draft: Draft, turn = origin.turn) {
    this.#origin = origin
    this.#draft = draft
    this.#turn = turn
    Object.preventExtensions(this) // all guards of an invocation share it
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
    return level === undefined ? spent : addUsage(spent, host.ancestors?.[level]?.usage ?? {})
  }
  get now(): number {
    return this.#origin.host.now
  }
  get workedMs(): number {
    const { level } = this.#draft
    const { ancestors, workedMs: own } = this.#origin.host
    return level === undefined ? own : own + (ancestors?.[level]?.workedMs ?? 0)
  }
  get signal(): AbortSignal {
    return this.#origin.signalFor(this.#turn)
  }
  get ledger(): readonly LedgerEntry[] {
    return this.#origin.host.ledger
  }

  spend(usage: Partial<TokenUsage>): BaseContext {
    return BaseContext.change(this, { spent: addTokens(this.#draft.spent ?? noTokens, spentTokens(usage)) })
  }

  warn(message: string, code: WarningCode = 'HOOK_WARNING'): BaseContext {
    return BaseContext.change(this, { warnings: [...(this.#draft.warnings ?? []), { code, message }] })
  }

  static hostOf(context: BaseContext): HookHost {
    return context.#origin.host
  }

  static draftOf(context: BaseContext): Draft {
    return context.#draft
  }

  /** A copy of a context with some of its draft changed. */
  static change(context: BaseContext, change: Partial<Draft>): BaseContext {
    return BaseContext.#copy(context, { ...context.#draft, ...change })
  }

  /** `change` for the time limit of a call, which is set before each call: one spread is ten times as fast as two. */
  static limit(context: BaseContext, within: number): BaseContext {
    return BaseContext.#copy(context, { ...context.#draft, within })
  }

  static #copy(context: BaseContext, draft: Draft): BaseContext {
    const Class = context.constructor as typeof BaseContext
    return new Class(context.#origin, draft, context.#turn)
  }

  static infer(context: BaseContext, options: InferOptions): Promise<unknown> {
    const answer = context.#origin.infer(options, context.#turn)
    answer.catch(() => undefined) // a hook that does not await it must not cause an unhandled rejection
    return answer
  }

  /** The draft of the context that a handler returned. Throws if it is not a context of this invocation. */
  static accept(returned: unknown, origin: Origin): Draft {
    if (typeof returned === 'object' && returned !== null && #origin in returned) {
      if (returned.#origin === origin) return returned.#draft
      throw new AgentError(
        'HOOK_FOREIGN_CONTEXT',
        `It returned a context from a different invocation (${returned.#origin.trigger}). Return the context it received, or a copy made with the methods of that context.`,
        { value: returned.#origin.trigger },
      )
    }
    if (returned === undefined) {
      throw new AgentError(
        'HOOK_NO_RETURN',
        'It returned nothing. Return the context, changed or not: "return ctx" or "return ctx.block(…)".',
      )
    }
    throw new AgentError(
      'HOOK_FOREIGN_CONTEXT',
      `It returned ${describeValue(returned)}, not a context. Return the context, changed or not: "return ctx" or "return ctx.block(…)".`,
      { value: returned },
    )
  }

  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { trigger: this.trigger, ...this.#draft.facts, state: this.state }
  }
}
