import type { HookRecord } from '../state/execution.ts'
import { AgentError } from '../errors.ts'
import { contextClasses } from './context-methods.ts'
import type { BaseContext, Mode } from './base-context.ts'
import type { Hook } from './hook.ts'
import { toNameTest } from './patterns.ts'
import { isAround, triggerNames, type HookTrigger } from './triggers.ts'

const MAX_HOOKS = 1000

/** A hook in its place, under a name that no other hook of the stack has. */
export type StackedHook = Hook & { readonly index: number; readonly selects: (toolName: string) => boolean }

/** The hooks of one trigger, sorted, by what they do. */
export type Plan = {
  readonly trigger: HookTrigger
  /** The place of the trigger in the table: the ledger keeps numbers. */
  readonly number: number
  readonly contexts: { readonly [M in Mode]: typeof BaseContext }
  readonly transforms: readonly StackedHook[]
  readonly arounds: readonly StackedHook[]
  readonly guards: readonly StackedHook[]
  readonly observers: readonly StackedHook[]
  /** Whether no hook is in force here. */
  readonly empty: boolean
  /** Whether there are shadows: they stand among `transforms` in their order, and in front of `guards`. */
  readonly shadowed: boolean
}

/**
 * Hooks in the order in which they run: by priority, ties as they were registered. Immutable; an empty stack lets
 * everything through. What applies where is worked out once, so that firing a trigger looks nothing up but a plan.
 */
export class HookStack {
  readonly hooks: readonly StackedHook[]
  /** The hooks in force, as each run remembers them. */
  readonly records: readonly HookRecord[]
  readonly hasShadows: boolean
  readonly #plans: ReadonlyMap<HookTrigger, Plan>
  readonly #toolPlans: ReadonlyMap<string, ReadonlyMap<HookTrigger, Plan>>
  readonly #tools: readonly string[]
  readonly #declared: readonly Hook[]

  constructor(hooks: readonly Hook[] = [], tools: readonly string[] = []) {
    if (hooks.length > MAX_HOOKS) {
      throw new AgentError('HOOK_INVALID_OPTION', `An agent has at most ${MAX_HOOKS} hooks; these are ${hooks.length}.`)
    }
    this.hooks = withUniqueNames(hooks)
    this.records = recordsOf(this.hooks)
    this.hasShadows = hooks.some((each) => each.shadow)
    this.#tools = tools
    this.#declared = hooks
    const sorted = this.hooks.toSorted((a, b) => b.priority - a.priority) // stable: ties keep registration order
    // A "tool" option selects among the tools there are. A name the model invents selects nothing, and no pattern sees it.
    this.#plans = plansOf(sorted.filter((each) => each.tool === undefined))
    this.#toolPlans = new Map(tools.map((name) => [name, plansOf(sorted.filter((each) => each.selects(name)))]))
  }

  with(...hooks: readonly Hook[]): HookStack {
    return new HookStack([...this.#declared, ...hooks], this.#tools)
  }

  /** What runs at a trigger, for a call of a certain tool where there is one. */
  plan(trigger: HookTrigger, toolName?: string): Plan {
    const plans = toolName === undefined ? this.#plans : (this.#toolPlans.get(toolName) ?? this.#plans)
    return plans.get(trigger)!
  }
}

function recordsOf(hooks: readonly StackedHook[]): readonly HookRecord[] {
  const inForce = hooks.filter((each) => !each.shadow)
  return Object.freeze(inForce.map(({ name, mode }) => Object.freeze({ name, mode })))
}

function plansOf(hooks: readonly StackedHook[]): ReadonlyMap<HookTrigger, Plan> {
  return new Map(
    triggerNames.map((trigger, number) => {
      const here = hooks.filter((each) => each.triggers.includes(trigger))
      const transforms = here.filter((each) => each.mode === 'transform')
      const guards = here.filter((each) => each.mode === 'guard')
      const plan: Plan = {
        trigger,
        number,
        contexts: contextClasses[trigger],
        transforms: isAround(trigger) ? [] : transforms,
        arounds: isAround(trigger) ? transforms : [],
        // All guards see the same value; shadows do so before one in force can end the matter.
        guards: [...guards.filter((each) => each.shadow), ...guards.filter((each) => !each.shadow)],
        observers: here.filter((each) => each.mode === 'observe'),
        empty: here.every((each) => each.shadow),
        shadowed: here.some((each) => each.shadow),
      }
      return [trigger, plan]
    }),
  )
}

/** Given names must differ; made-up ones are told apart by a number. */
function withUniqueNames(hooks: readonly Hook[]): readonly StackedHook[] {
  const taken = new Set<string>()
  const seen = new Set<Hook>()
  for (const each of hooks) {
    if (seen.has(each)) throw duplicate(each.name, 'was added twice')
    seen.add(each)
  }
  const names = new Map<Hook, string>()
  // Hooks in force come first: what they are called must not depend on a shadow.
  for (const isShadow of [false, true]) {
    const these = hooks.filter((each) => each.shadow === isShadow)
    for (const each of these.toSorted((a, b) => Number(b.named) - Number(a.named))) {
      if (each.named && taken.has(each.name)) throw duplicate(each.name, 'has the name of another hook')
      let name = each.name
      for (let count = 2; taken.has(name); count++) name = `${each.name}#${count}`
      taken.add(name)
      names.set(each, name)
    }
  }
  return hooks.map((each, index) =>
    Object.freeze({ ...each, name: names.get(each)!, named: true, index, selects: selectorOf(each) }),
  )
}

function selectorOf({ tool }: Hook): (toolName: string) => boolean {
  if (tool === undefined) return () => true
  if (typeof tool === 'string' || tool instanceof RegExp) return toNameTest(tool)
  return (name) => name === tool.name
}

function duplicate(name: string, how: string): AgentError {
  return new AgentError('HOOK_DUPLICATE', `The hook "${name}" ${how}. Give each hook its own name.`, { value: name })
}
