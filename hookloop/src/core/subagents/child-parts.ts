import type { Hook } from '../hooks/hook.ts'
import { MODEL_KEY, type AgentState } from '../state/agent-state.ts'
import type { JsonObject } from '../../values/json.ts'
import { joinRedactors } from '../../values/secrets.ts'
import { BaseContext } from '../hooks/base-context.ts'
import { HookPlans, type PlannedHook } from '../hooks/hook-plans.ts'
import type { AgentSpec } from '../agent/agent-tool.ts'
import type { ApprovalPolicy } from '../agent/capability.ts'
import { isAgent, partsOf, type AgentParts } from '../agent/agent-parts.ts'

/** The parts of each subagent, created once for all its runs. */
const known = new WeakMap<AgentParts, WeakMap<object, AgentParts>>()

/**
 * The parts of an agent as a subagent of another: its own model, tools and hooks, and the guards, observers and approval of
 * its parent, which include those of the parent's ancestors.
 */
export function childParts(
  parent: AgentParts,
  { to, name }: { readonly to: object; readonly name: string },
): AgentParts {
  let ofParent = known.get(parent)
  if (ofParent === undefined) known.set(parent, (ofParent = new WeakMap()))
  let parts = ofParent.get(to)
  if (parts === undefined) ofParent.set(to, (parts = createChildParts(parent, { to, name })))
  return parts
}

/** Whether a subagent uses the current model of its parent. */
function usesParentModel(to: object): boolean {
  return !isAgent(to) && (to as AgentSpec).model === undefined
}

/** The metadata that a subagent gets from its parent. The model of the conversation is included only if it uses it. */
export function inheritedMetadata({ metadata }: AgentState, to: object): JsonObject {
  const { [MODEL_KEY]: model, ...rest } = metadata
  return usesParentModel(to) && model !== undefined ? { ...rest, [MODEL_KEY]: model } : rest
}

function createChildParts(
  parent: AgentParts,
  { to, name }: { readonly to: object; readonly name: string },
): AgentParts {
  const own = isAgent(to) ? partsOf(to) : parent.derive(to, name)
  const inherited = parent.plans.hooks
    .filter((each) => each.mode !== 'transform' || each.inherited || each.action?.inherited === true)
    .map((each) => inherit(each, parent.level))
  const origins = new Set(inherited.map(({ handle }) => originOf(handle)))
  const hooks = own.plans.hooks.filter(({ handle }) => !origins.has(handle)) // a guard that both agents have runs once
  return Object.freeze({
    ...own,
    name,
    plans: new HookPlans([...withUniqueNames(inherited, hooks, parent.name), ...hooks], own.toolNames),
    approval: joinApproval(parent.approval, own.approval),
    redact: joinRedactors([own.redact, parent.redact].filter((each) => each !== undefined)),
    level: parent.level + 1,
    budgets: [...parent.budgets, ...own.budgets],
  })
}

type Handle = Hook['handle']
const originals = new WeakMap<Handle, Handle>()

function originOf(handle: Handle): Handle {
  return originals.get(handle) ?? handle
}

/** A hook of an ancestor. Its context counts what was spent there and since. */
function inherit(hook: PlannedHook, level: number): Hook {
  const { handle, when } = hook
  if (originals.has(handle)) return hook // inherited by the parent, so it counts from its own agent already
  const atLevel = (ctx: never): never => BaseContext.change(ctx, { level }) as never
  const inside: Handle = (ctx, next) => handle(atLevel(ctx), next)
  originals.set(inside, handle)
  return { ...hook, handle: inside, when: when && ((ctx) => when(atLevel(ctx))) }
}

/** An inherited hook with the name of one of the agent's own hooks gets the name of the parent as a prefix. */
function withUniqueNames(inherited: readonly Hook[], own: readonly Hook[], parent: string): readonly Hook[] {
  const taken = new Set(own.map((each) => each.name))
  return inherited.map((each) => {
    let name = each.name
    while (taken.has(name)) name = `${parent}:${name}`
    taken.add(name)
    return name === each.name ? each : { ...each, name }
  })
}

/** The approver of the parent, asked about the tools of both. */
function joinApproval(parent: ApprovalPolicy, own: ApprovalPolicy): ApprovalPolicy {
  return { ...parent, asksAbout: (tool) => parent.asksAbout(tool) || own.asksAbout(tool) }
}
