import { optionTypes } from '../../values/option-types.ts'
import { checkOptions } from '../../values/check-options.ts'
import { BaseContext, type Mode } from './base-context.ts'
import type { InferOptions } from './infer.ts'
import type { HookOutcome } from './outcome.ts'

/**
 * A handler whose work happens elsewhere: a command, an HTTP request, a model. It gets the context and returns an outcome
 * as JSON, which is recorded, so that a replay does not repeat the work. With `guard` it decides; with `hook` it can change
 * values and decide.
 */
export type Action = {
  /** `shell`, `http`, … */
  readonly kind: string
  /** A short description: the default name of the hook, and what lists show. */
  readonly label: string
  /**
   * It calls models with `ctx.infer`, which records each answer. The action itself is not recorded, so it must be
   * deterministic apart from these calls.
   */
  readonly asks?: true
  /** The default time limit of the hook. */
  readonly timeoutMs?: number
  /** It enforces the time limit of the hook itself. Otherwise the hook fails when its time is over, even if `perform` continues. */
  readonly limitsItself?: true
  /** Subagents inherit it even if it is used with `hook`, as they inherit all guards. */
  readonly inherited?: true
  /** With a hook at `beforeToolUse`: it gets only calls whose arguments fit the tool. */
  readonly fitting?: true
  /** Does the work. An outcome that its trigger does not know is a failure of the hook, so a guard blocks. */
  readonly perform: (ctx: ActionContext, run: ActionRun) => Promise<HookOutcome>
}

/** What an action gets, at any trigger: what every context has. It decides with the outcome that it returns. */
export type ActionContext = BaseContext

/** What the trigger of an action carries, such as `toolCall`, by name. */
export function factsOf(ctx: ActionContext): { readonly [fact: string]: unknown } {
  return BaseContext.draftOf(ctx).facts
}

/** Calls a model for an action with `asks`. The answer is recorded. */
export function askModel(ctx: ActionContext, options: InferOptions): Promise<unknown> {
  return BaseContext.infer(ctx, options)
}

/** The second argument of `perform`. */
export type ActionRun = {
  readonly mode: Mode
  /** Aborts when the run is cancelled or the hook times out. */
  readonly signal: AbortSignal
  /** The time limit of the hook, if it has one. */
  readonly timeoutMs: number | undefined
}

/** Creates an action, which `hook`, `guard` and `observe` take as a handler. */
export function action(definition: Action): Action {
  checkOptions('action', definition, types, 'HOOK_INVALID_OPTION')
  const frozen = Object.freeze({ ...definition })
  actions.add(frozen)
  return frozen
}

const names = ['kind', 'label', 'asks', 'limitsItself', 'inherited', 'fitting', 'perform'] as const
const types = { ...Object.fromEntries(names.map((name) => [name, optionTypes.any])), timeoutMs: optionTypes.positive }

export function isAction(value: unknown): value is Action {
  return typeof value === 'object' && value !== null && actions.has(value)
}

const actions = new WeakSet<object>()
