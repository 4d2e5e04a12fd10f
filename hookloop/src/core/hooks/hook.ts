import { choiceOf, optionTypes, type OptionType } from '../../values/option-types.ts'
import { checkOptions } from '../../values/check-options.ts'
import type { InferenceResponse, RequestChange } from '../state/inference.ts'
import { hashText, type JsonObject } from '../../values/json.ts'
import type { ToolRef } from '../../values/schema.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import { isAction, type Action } from './action.ts'
import type { AroundContext, GuardContext, HookContext, ObserveContext, SeenContext } from './context.ts'
import type { Mode } from './base-context.ts'
import { callerPlace } from './caller-place.ts'
import type { NamePattern } from './patterns.ts'
import {
  isAround,
  isTrigger,
  specOf,
  triggerNames,
  unknownTrigger,
  type GuardTrigger,
  type HookTrigger,
  type PlainTrigger,
} from './triggers.ts'

/** A hook, as returned by `hook`, `guard`, `observe` or `shadow`. It does nothing until an agent uses it. */
export type Hook<T = HookTrigger> = {
  readonly name: string
  readonly triggers: readonly T[]
  readonly mode: Mode
  readonly priority: number
  /** Whether the name was given, not made up: given names are unique within an agent. */
  readonly named: boolean
  readonly tool: NamePattern | ToolRef | undefined
  readonly when: ((ctx: never) => boolean) | undefined
  readonly timeoutMs: number | undefined
  readonly onFailure: 'continue' | 'block' | undefined
  readonly effect: boolean
  readonly stream: StreamPolicy | undefined
  /** Whether nothing comes of what it decides; see `shadow`. */
  readonly shadow: boolean
  /** Whether it only keeps records for a capability; see `HookOptions`. */
  readonly bookkeeping: boolean
  /** Whether subagents have it, and the model calls of hooks; see `inherited`. */
  readonly inherited: boolean
  /** A hash of the source of a guard that nothing gives a name. */
  readonly code: string | undefined
  /** The file and line where it is defined, such as `src/agent.ts:12`; undefined if that is not known. */
  readonly definedAt: () => string | undefined
  /** What `handle` does elsewhere. */
  readonly action: Action | undefined
  readonly handle: (ctx: never, next: never) => unknown
}

/**
 * When a streamed answer may be seen: `hold`, once this hook has passed all of it; `window`, in pieces, each once the
 * hook has passed the answer up to somewhat beyond it; `after`, as it comes, before the hook.
 */
export type StreamPolicy = (typeof streamPolicies)[number]

const streamPolicies = ['hold', 'window', 'after'] as const

export type Handler<C, R> = ((ctx: C) => R | Promise<R>) | { handle(ctx: C): R | Promise<R> }
export type Around<C, R, N> = (ctx: C, next: (...change: N[]) => Promise<R>) => Promise<R>

/**
 * The handler of a hook: a function, an object with `handle`, or an action. It returns its context or a changed copy; an
 * `around…` hook returns the result of `next()` or a substitute.
 */
export type HookHandler<T extends HookTrigger, I, O> = [T] extends [PlainTrigger]
  ? Handler<HookContext<T, I>, HookContext<T, I>> | Action
  : [T] extends ['aroundInference']
    ? Around<AroundContext<T>, InferenceResponse, RequestChange>
    : [T] extends ['aroundToolUse']
      ? Around<AroundContext<T, O>, ToolExecution, never>
      : never

/**
 * Options of `hook`, `guard` and `observe`, besides the ones below: `name` (generated if omitted), `effect` (the result is
 * recorded and not repeated in a replay, needs a name), `tool` at tool triggers (a name, wildcard, RegExp, or the tool
 * itself, which types the arguments) and `stream` at `afterInference`.
 */
export type HookOptions<T extends HookTrigger, A, K> = {
  /** Higher runs first among the hooks of one mode; equal ones in order of registration. Default 0. */
  readonly priority?: number
  /** The time the handler may take. Default: 60,000 for a guard, no limit otherwise. */
  readonly timeoutMs?: number
  /** Whether the hook runs for an event. See `toolName`, `stepType`, `hasMetadata`. Default: always. */
  readonly when?: (ctx: SeenContext<T, A>) => boolean
  /**
   * It only keeps records, so `explain` and the command show its changes only with `verbose`. What it blocks, stops or fails
   * with is always shown. Default false.
   */
  readonly bookkeeping?: boolean
} & ({ readonly name?: string; readonly effect?: false } | { readonly name: string; readonly effect: true }) &
  ([T] extends [`${string}ToolUse`]
    ? { readonly tool?: NamePattern | K }
    : [T] extends ['afterInference']
      ? { readonly stream?: StreamPolicy }
      : unknown)

type On<T> = T | readonly T[]

/**
 * Defines a hook that changes something: the value of its trigger, the state, or whether the run continues.
 *
 * @example
 * hook('afterToolUse', (ctx) => ctx.withOutput(redact(ctx.toolExecution.output)), { priority: -100 })
 *
 * @example
 * hook('aroundInference', (ctx, next) => next().catch(() => next({ model: backup })), { name: 'fallback' })
 */
export function hook<T extends HookTrigger, I = JsonObject, O = JsonObject>(
  on: On<T>,
  handler: HookHandler<T, I, O>,
  options?: HookOptions<T, T extends 'aroundToolUse' ? O : I, ToolRef<I, O>> & {
    /** What happens if it throws: continue without it, or block. Default: the error goes to `onError`. */
    readonly onFailure?: 'continue' | 'block'
  },
): Hook<T> {
  return declare('transform', on, handler, options)
}

/**
 * Defines a hook that decides about the final value: block, ask, allow or stop. It cannot change anything, and it fails
 * closed: a guard that throws or times out blocks.
 *
 * @example
 * guard('beforeToolUse', (ctx) => (/git push/.test(ctx.toolCall.args.command) ? ctx.block('Agents never push.') : ctx), { tool: bash })
 */
export function guard<T extends GuardTrigger, A = JsonObject>(
  on: On<T>,
  handler: Handler<GuardContext<T, A>, GuardContext<T, A>> | Action,
  options?: HookOptions<T, A, ToolRef<unknown, A>>,
): Hook<T> {
  return declare('guard', on, handler, options)
}

/**
 * Defines a hook that only observes, in the background. It cannot change, delay or fail a run.
 *
 * @example
 * observe('*', (ctx) => console.error(ctx.trigger, ctx.state.stepCount))
 */
export function observe<T extends PlainTrigger, A = JsonObject>(
  on: On<T> | '*',
  handler: Handler<ObserveContext<T, A>, unknown> | Action,
  options?: HookOptions<T, A, ToolRef<unknown, A>>,
): Hook<T> {
  const watched = on === '*' ? (triggerNames.filter((name) => !isAround(name)) as unknown as readonly T[]) : on
  return declare('observe', watched, handler, options)
}

/**
 * Runs a hook or guard in shadow mode: its decisions are recorded in the ledger, not applied. A hook that has effects or
 * wraps a call cannot run in shadow mode.
 *
 * @example
 * createAgent({ model, use: [shadow(stricterPolicy)] })
 */
export function shadow<T extends PlainTrigger>(of: Hook<T>, options: { readonly name?: string } = {}): Hook<T> {
  checkOptions('shadow', options, ['name'], 'HOOK_INVALID_OPTION')
  if (!isHook(of)) throw invalid('passed to shadow()', 'it was not created by hook() or guard()', of)
  const { name } = options
  const made: Hook<T> = Object.freeze({ ...of, ...(name !== undefined && { name, named: true }), shadow: true })
  check(made)
  declared.add(made)
  return made
}

/** A hook that is defined elsewhere than where `hook` was called, such as in a file. */
export function definedIn<T>(of: Hook<T>, place: string): Hook<T> {
  const made: Hook<T> = Object.freeze({ ...of, definedAt: () => place })
  declared.add(made)
  return made
}

/** A hook around model calls that also wraps those of subagents and of hooks, as guards decide on them. */
export function inherited(of: Hook<'aroundInference'>): Hook<'aroundInference'> {
  const made = Object.freeze({ ...of, inherited: true })
  declared.add(made)
  return made
}

export function isHook(value: unknown): value is Hook {
  return typeof value === 'object' && value !== null && declared.has(value)
}

/** Hooks made by the functions above and checked by them; a lookalike is not one. */
const declared = new WeakSet<object>()

type LooseOptions = {
  name?: string
  priority?: number
  timeoutMs?: number
  when?: (ctx: never) => boolean
  effect?: boolean
  tool?: NamePattern | ToolRef
  stream?: StreamPolicy
  onFailure?: 'continue' | 'block'
  bookkeeping?: boolean
}

const optionsOfHooks = {
  name: optionTypes.any,
  priority: optionTypes.finite,
  timeoutMs: optionTypes.positive,
  when: optionTypes.any,
  effect: optionTypes.any,
  tool: optionTypes.any,
  stream: choiceOf(...streamPolicies),
  onFailure: choiceOf('continue', 'block'),
  bookkeeping: optionTypes.any,
} satisfies { readonly [K in keyof Required<LooseOptions>]: OptionType }

function declare<T extends HookTrigger>(mode: Mode, on: On<T>, handler: unknown, given: object = {}): Hook<T> {
  const kind = mode === 'transform' ? 'hook' : mode
  checkOptions(kind, given, optionsOfHooks, 'HOOK_INVALID_OPTION')
  const options: LooseOptions = given
  const triggers: readonly T[] = Object.freeze(Array.isArray(on) ? [...new Set(on)] : [on as T])
  const action = isAction(handler) ? handler : undefined
  const handle = action === undefined ? toFunction(handler) : performing(action)
  const name = options.name ?? action?.label ?? nameOf(handler)
  const made: Hook<T> = Object.freeze({
    name: name ?? `${kind}:${triggers.map(String).join('+')}`,
    named: options.name !== undefined,
    code: name === undefined && mode === 'guard' ? codeOf(handler) : undefined,
    triggers,
    mode,
    priority: options.priority ?? 0,
    tool: options.tool,
    when: options.when,
    timeoutMs: options.timeoutMs,
    onFailure: options.onFailure,
    effect: options.effect ?? false,
    stream: options.stream,
    shadow: false,
    bookkeeping: options.bookkeeping ?? false,
    inherited: false,
    definedAt: callerPlace(),
    action,
    handle,
  })
  check(made)
  declared.add(made)
  return made
}

/** The handler of an action: it gets an `ActionRun` instead of `next`, and returns an outcome. */
function performing({ perform }: Action): (ctx: never, run: never) => unknown {
  return (ctx, run) => perform(ctx, run)
}

function toFunction(handler: unknown): (ctx: never, next: never) => unknown {
  if (typeof handler === 'function') return handler as (ctx: never) => unknown
  const object = handler as { handle?: unknown } | null | undefined
  if (typeof object?.handle === 'function') {
    const { handle } = object as { handle: (ctx: never, next: never) => unknown }
    return (ctx, next) => handle.call(object, ctx, next)
  }
  throw new AgentError('HOOK_INVALID_OPTION', 'A hook needs a function, or an object with a method "handle".', {
    value: handler,
  })
}

function nameOf(handler: unknown): string | undefined {
  const name = typeof handler === 'function' ? handler.name : (handler as object).constructor?.name
  return name === '' || name === 'Object' || name === 'handle' ? undefined : name
}

/** Another guard without a name at the same trigger must not pass for this one. */
function codeOf(handler: unknown): string {
  const source = typeof handler === 'function' ? handler : (handler as { readonly handle: unknown }).handle
  return hashText(String(source)).slice(0, 16)
}

function check(made: Hook<string>): void {
  const { triggers } = made
  if (!triggers.every(isTrigger)) throw unknownTrigger(triggers.find((trigger) => !isTrigger(trigger)))
  const problem = problems(made as Hook).find(([isWrong]) => isWrong)
  if (problem !== undefined) throw invalid(made.name, problem[1], problem[2])
}

type Problem = readonly [isWrong: boolean, why: string, value: unknown]

/** What may be wrong with a hook, although its types may not say so: a guard must not be declared where it decides nothing. */
function problems({
  triggers,
  mode,
  named,
  action,
  effect,
  tool,
  stream,
  onFailure,
  shadow,
}: Hook): readonly Problem[] {
  const around = triggers.find(isAround)
  const isAnAround = around !== undefined
  const performs = effect || action !== undefined
  const guardless = mode === 'guard' ? triggers.find((trigger) => specOf(trigger).guard.length === 0) : undefined
  const toolless = tool === undefined ? undefined : triggers.find((trigger) => !trigger.endsWith('ToolUse'))
  const open =
    onFailure === 'block' ? triggers.find((trigger) => specOf(trigger).onGuardFailure === undefined) : undefined
  const misplaced = stream !== undefined && triggers.some((trigger) => trigger !== 'afterInference')
  const observes = mode === 'observe'
  const decidesOnCalls = mode === 'guard' && triggers.includes('beforeInference')
  return [
    [triggers.length === 0, 'it has no trigger', triggers],
    [guardless !== undefined, `guards are not supported at ${guardless}; use hook or observe`, guardless],
    [observes && isAnAround, `observers are not supported at ${around}`, around],
    [toolless !== undefined, `"tool" has no effect at ${toolless}, where there is no tool`, tool],
    [misplaced, '"stream" is only supported at afterInference', stream],
    [open !== undefined, `nothing can be blocked at ${open}`, onFailure],
    [isAnAround && !triggers.every(isAround), 'around triggers and other triggers need separate hooks', triggers],
    [isAnAround && action !== undefined, 'an action cannot be used at an around trigger', action?.kind],
    [isAnAround && effect, '"effect" is not supported for around hooks, which are recorded with their call', true],
    [shadow && observes, 'an observer decides nothing, so it cannot run in shadow mode', 'observe'],
    [shadow && isAnAround, 'an around hook makes the call that it wraps, so it cannot run in shadow mode', 'around'],
    [shadow && performs, 'it has effects, so it cannot run in shadow mode', true],
    [onFailure !== undefined && mode !== 'transform', '"onFailure" is only supported by hook()', mode],
    [action?.asks === true && observes, 'an observer cannot call models', mode],
    [action?.asks === true && decidesOnCalls, 'an action that calls models cannot decide on them', 'beforeInference'],
    [effect && observes, '"effect" is not supported for observers, which are not recorded', true],
    [effect && !named, 'a hook with "effect" needs a "name", under which it is recorded', true],
    [tool !== undefined && !isSelector(tool), '"tool" must be a name, a wildcard, a RegExp or a tool', tool],
    [stream === 'window' && performs, '"stream: window" runs a hook many times, so it cannot have effects', stream],
  ]
}

function isSelector(tool: unknown): boolean {
  if (typeof tool === 'string' || tool instanceof RegExp) return true
  return typeof tool === 'object' && tool !== null && 'name' in tool && 'input' in tool && typeof tool.name === 'string'
}

function invalid(name: string, why: string, value: unknown): AgentError {
  return new AgentError('HOOK_INVALID_OPTION', `The hook "${name}" is invalid: ${why}.`, { value })
}
