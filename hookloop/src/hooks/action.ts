import { AgentError } from '../errors.ts'
import type { BaseContext, Mode } from './base-context.ts'
import type { HookOutcome } from './outcome.ts'
import { specOf, type Ability, type HookTrigger } from './triggers.ts'

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
  /** The default time limit of the hook. An action that does not call models enforces its time limit itself. */
  readonly timeoutMs?: number
  /** Subagents inherit it even if it is used with `hook`, as they inherit all guards. */
  readonly inherited?: true
  readonly perform: (ctx: BaseContext, how: ActionRun) => Promise<HookOutcome>
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
  const frozen = Object.freeze({ ...definition })
  actions.add(frozen)
  return frozen
}

export function isAction(value: unknown): value is Action {
  return typeof value === 'object' && value !== null && actions.has(value)
}

const actions = new WeakSet<object>()

/** Checks that everything in an outcome has an effect at the trigger. Throws HOOK_OUTCOME_INVALID otherwise. */
export function checkedOutcome(outcome: HookOutcome, trigger: HookTrigger, mode: Mode): HookOutcome {
  if (mode === 'observe') return {}
  const { hook, guard } = specOf(trigger)
  const changes: readonly Ability[] = mode === 'transform' && hook !== 'around' ? hook : []
  const can = (...needed: readonly Ability[]): boolean =>
    needed.some((ability) => guard.includes(ability) || changes.includes(ability))
  const reject = (what: string): never => {
    throw new AgentError('HOOK_OUTCOME_INVALID', `Its outcome has ${what}, which has no effect at ${trigger}.`, {
      value: outcome,
    })
  }
  const { decision, votes = [], recovery } = outcome
  if (decision === 'block' && !can('block')) reject('a block')
  if ((decision === 'ask' || decision === 'allow') && !can('permit')) reject(`"${decision}"`)
  for (const vote of votes) {
    if (vote.decision === 'forbidContinuation' ? !can('stop') : !can('vote', 'continue')) reject(vote.decision)
  }
  if (recovery !== undefined && !changes.includes('recover')) reject(recovery.decision)
  for (const [name, ability] of changing) {
    if (outcome[name] !== undefined && !changes.includes(ability)) {
      reject(mode === 'guard' ? `a change of its ${name}, which a guard cannot change` : `a change of its ${name}`)
    }
  }
  return outcome
}

const changing = [
  ['input', 'input'],
  ['request', 'request'],
  ['response', 'response'],
  ['args', 'args'],
  ['output', 'output'],
  ['messages', 'messages'],
  ['state', 'state'],
] as const satisfies readonly (readonly [keyof HookOutcome, Ability])[]
