import type { HookRecord } from '../state/execution.ts'
import { AgentError } from '../../errors.ts'
import { contextClasses } from './context-methods.ts'
import type { BaseContext, Mode } from './base-context.ts'
import type { Hook } from './hook.ts'
import { toNameTest } from './patterns.ts'
import { isAround, triggerNames, type HookTrigger } from './triggers.ts'

const MAX_HOOKS = 1000

/** A hook of an agent, with its index and a unique name. */
export type PlannedHook = Hook & { readonly index: number; readonly selects: (toolName: string) => boolean }

/** The hooks of one trigger, by mode and in order. */
export type Plan = {
  readonly trigger: HookTrigger
  /** The index of the trigger: the ledger stores numbers. */
  readonly number: number
  readonly contexts: { readonly [M in Mode]: typeof BaseContext }
  readonly transforms: readonly PlannedHook[]
  readonly arounds: readonly PlannedHook[]
  readonly guards: readonly PlannedHook[]
  readonly observers: readonly PlannedHook[]
  /** Whether there are no hooks, apart from shadow hooks. */
  readonly empty: boolean
  /** Whether there are shadow hooks: among `transforms` in their order, and before the other `guards`. */
  readonly shadowed: boolean
}

/**
 * Hooks in the order in which they run: by priority, ties in order of registration. Immutable. The plan of each trigger
 * and tool is computed once.
 */
export class HookPlans {
  readonly hooks: readonly PlannedHook[]
  /** All hooks but shadow hooks, as runs store them. */
  readonly records: readonly HookRecord[]
  readonly hasShadows: boolean
  readonly #plans: ReadonlyMap<HookTrigger, Plan>
  readonly #toolPlans: ReadonlyMap<string, ReadonlyMap<HookTrigger, Plan>>
  readonly #tools: readonly string[]
  readonly #declared: readonly Hook[]

  constructor(hooks: readonly Hook[] = [], tools: readonly string[] = []) {
    if (hooks.length > MAX_HOOKS) {
      throw new AgentError(
        'HOOK_INVALID_OPTION',
        `An agent can have at most ${MAX_HOOKS} hooks; this one has ${hooks.length}.`,
      )
    }
    this.hooks = withUniqueNames(hooks)
    this.records = recordsOf(this.hooks, tools)
    this.hasShadows = hooks.some((each) => each.shadow)
    this.#tools = tools
    this.#declared = hooks
    const sorted = this.hooks.toSorted((a, b) => b.priority - a.priority) // stable: ties keep registration order
    // The option "tool" selects among the tools of the agent. Names that a model makes up are never matched.
    this.#plans = plansOf(sorted.filter((each) => each.tool === undefined))
    this.#toolPlans = new Map(tools.map((name) => [name, plansOf(sorted.filter((each) => each.selects(name)))]))
  }

  with(...hooks: readonly Hook[]): HookPlans {
    return new HookPlans([...this.#declared, ...hooks], this.#tools)
  }

  /** The plan of a trigger; at the tool triggers, for this tool. */
  of(trigger: HookTrigger, toolName?: string): Plan {
    const plans = toolName === undefined ? this.#plans : (this.#toolPlans.get(toolName) ?? this.#plans)
    return plans.get(trigger)!
  }
}

function recordsOf(hooks: readonly PlannedHook[], tools: readonly string[]): readonly HookRecord[] {
  const inForce = hooks.filter((each) => !each.shadow)
  return Object.freeze(inForce.map((each) => recordOf(each, tools)))
}

function recordOf(hook: PlannedHook, tools: readonly string[]): HookRecord {
  const { name, mode, triggers, tool, selects, code } = hook
  if (mode !== 'guard') return Object.freeze({ name, mode })
  const guard = { name, mode, on: triggers, ...(code !== undefined && { code }) }
  if (tool === undefined) return Object.freeze(guard)
  const selected = tool instanceof RegExp ? tools.filter(selects) : [typeof tool === 'string' ? tool : tool.name]
  return Object.freeze({ ...guard, tools: Object.freeze(selected) })
}

function plansOf(hooks: readonly PlannedHook[]): ReadonlyMap<HookTrigger, Plan> {
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
        // Shadow guards run first: a block skips the guards after it.
        guards: [...guards.filter((each) => each.shadow), ...guards.filter((each) => !each.shadow)],
        observers: here.filter((each) => each.mode === 'observe'),
        empty: here.every((each) => each.shadow),
        shadowed: here.some((each) => each.shadow),
      }
      return [trigger, plan]
    }),
  )
}

/** Names given by the user must be unique; generated ones get a number, and so does code that several guards share. */
function withUniqueNames(hooks: readonly Hook[]): readonly PlannedHook[] {
  const taken = new Set<string>()
  const seen = new Set<Hook>()
  for (const each of hooks) {
    if (seen.has(each)) throw duplicate(each.name, 'was added twice')
    seen.add(each)
  }
  const names = new Map<Hook, string>()
  const takenCodes = new Set<string>()
  const codes = new Map<Hook, string>()
  // Shadow hooks come last: they must not change the names of the others.
  for (const isShadow of [false, true]) {
    const these = hooks.filter((each) => each.shadow === isShadow)
    for (const each of these.toSorted((a, b) => Number(b.named) - Number(a.named))) {
      if (each.named && taken.has(each.name)) throw duplicate(each.name, 'has the name of another hook')
      names.set(each, numbered(each.name, taken))
      if (each.code !== undefined) codes.set(each, numbered(each.code, takenCodes))
    }
  }
  return hooks.map((each, index) =>
    Object.freeze({
      ...each,
      name: names.get(each)!,
      code: codes.get(each),
      named: true,
      index,
      selects: selectorOf(each),
    }),
  )
}

/** A text that is not taken yet. Takes it. */
function numbered(text: string, taken: Set<string>): string {
  let free = text
  for (let count = 2; taken.has(free); count++) free = `${text}#${count}`
  taken.add(free)
  return free
}

function selectorOf({ tool }: Hook): (toolName: string) => boolean {
  if (tool === undefined) return () => true
  if (typeof tool === 'string' || tool instanceof RegExp) return toNameTest(tool)
  return (name) => name === tool.name
}

function duplicate(name: string, how: string): AgentError {
  return new AgentError('HOOK_DUPLICATE', `The hook "${name}" ${how}. Give each hook its own name.`, { value: name })
}
