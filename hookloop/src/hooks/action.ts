import { AgentError } from '../errors.ts'
import type { BaseContext, Mode } from './base-context.ts'
import type { HookOutcome } from './outcome.ts'
import { specOf, type Ability, type HookTrigger } from './triggers.ts'

/**
 * A handler whose work happens elsewhere: in a command, behind an address, in another model. It is given the context and
 * answers with an outcome in JSON, which is recorded, so that a replay does not do the work again. Under `guard` it
 * decides; under `hook` it changes, and may decide as well.
 */
export type Action = {
  /** What it is: `shell`, `http`, … */
  readonly kind: string
  /** What it does, in a few words: the name of a hook that has none, and what lists show. */
  readonly label: string
  /**
   * It asks models with `ctx.infer`, which records each answer. So it is not recorded as a whole, and what it makes of the
   * answers must be the same every time.
   */
  readonly asks?: true
  /** The time it has, if the hook says nothing. An action that does not ask models sees to its time itself. */
  readonly timeoutMs?: number
  /** It also applies to subagents when it is used by `hook`, as guards do in any case. */
  readonly inherited?: true
  readonly perform: (ctx: BaseContext, how: ActionRun) => Promise<HookOutcome>
}

/** How an action is to be performed. */
export type ActionRun = {
  readonly mode: Mode
  /** Aborts when the run is cancelled or the hook has run out of time. */
  readonly signal: AbortSignal
  /** The time the hook has, if it says so. An action has a default of its own. */
  readonly timeoutMs: number | undefined
}

/** Makes an action that `hook`, `guard` and `observe` take as a handler. */
export function action(made: Action): Action {
  const frozen = Object.freeze({ ...made })
  actions.add(frozen)
  return frozen
}

export function isAction(value: unknown): value is Action {
  return typeof value === 'object' && value !== null && actions.has(value)
}

const actions = new WeakSet<object>()

/** An outcome as far as it has an effect here. One that says what would be ignored is refused: somebody relied on it. */
export function checkedOutcome(outcome: HookOutcome, trigger: HookTrigger, mode: Mode): HookOutcome {
  if (mode === 'observe') return {}
  const { hook, guard } = specOf(trigger)
  const changes: readonly Ability[] = mode === 'transform' && hook !== 'around' ? hook : []
  const can = (...needed: readonly Ability[]): boolean =>
    needed.some((ability) => guard.includes(ability) || changes.includes(ability))
  const refuse = (what: string): never => {
    throw new AgentError('HOOK_OUTCOME_INVALID', `It answered with ${what}, which has no effect at ${trigger}.`, {
      value: outcome,
    })
  }
  const { decision, votes = [], recovery } = outcome
  if (decision === 'block' && !can('block')) refuse('a block')
  if ((decision === 'ask' || decision === 'allow') && !can('permit')) refuse(`"${decision}"`)
  for (const vote of votes) {
    if (vote.decision === 'forbidContinuation' ? !can('stop') : !can('vote', 'continue')) refuse(vote.decision)
  }
  if (recovery !== undefined && !changes.includes('recover')) refuse(recovery.decision)
  for (const [name, ability] of changing) {
    if (outcome[name] !== undefined && !changes.includes(ability)) {
      refuse(mode === 'guard' ? `a change of its ${name}, and a guard changes nothing` : `a change of its ${name}`)
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
