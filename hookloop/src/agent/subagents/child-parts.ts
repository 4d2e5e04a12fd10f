import type { Hook } from '../../hooks/hook.ts'
import { MODEL_KEY, type AgentState } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import { BaseContext } from '../../hooks/base-context.ts'
import { HookStack, type StackedHook } from '../../hooks/stack.ts'
import type { AgentSpec } from './agent-tool.ts'
import type { ApprovalPolicy, Redact } from '../capability.ts'
import { isAgent, partsOf } from './known-agents.ts'
import type { AgentParts } from '../agent-parts.ts'

/** A stack is put together once for all the runs of an agent inside another. */
const known = new WeakMap<AgentParts, WeakMap<object, AgentParts>>()

/**
 * An agent as it is inside another: with its own model, tools and hooks, and with the guards, the observers and the
 * approval of its parent, which has them from its own.
 */
export function childParts(
  parent: AgentParts,
  { to, name }: { readonly to: object; readonly name: string },
): AgentParts {
  let ofParent = known.get(parent)
  if (ofParent === undefined) known.set(parent, (ofParent = new WeakMap()))
  let parts = ofParent.get(to)
  if (parts === undefined) ofParent.set(to, (parts = madeInside(parent, { to, name })))
  return parts
}

/** Whether an agent inside another uses the model that its parent uses, whichever that is by then. */
export function usesParentModel(to: object): boolean {
  return !isAgent(to) && (to as AgentSpec).model === undefined
}

/** What the hooks of its parent know. The model of the conversation goes along only if it is to use that. */
export function metadataInside({ metadata }: AgentState, to: object): JsonObject {
  const { [MODEL_KEY]: model, ...rest } = metadata
  return usesParentModel(to) && model !== undefined ? { ...rest, [MODEL_KEY]: model } : rest
}

function madeInside(parent: AgentParts, { to, name }: { readonly to: object; readonly name: string }): AgentParts {
  const own = isAgent(to) ? partsOf(to) : parent.derive(to, name)
  const inherited = parent.stack.hooks
    .filter(({ mode, action }) => mode !== 'transform' || action?.inherited === true)
    .map((each) => seenFrom(each, parent.level))
  const origins = new Set(inherited.map(({ handle }) => originOf(handle)))
  const hooks = own.stack.hooks.filter(({ handle }) => !origins.has(handle)) // a guard that both have judges once
  return Object.freeze({
    ...own,
    name,
    stack: new HookStack([...renamed(inherited, hooks, parent.name), ...hooks], own.toolNames),
    approval: joinedApproval(parent.approval, own.approval),
    redact: joinedRedact(parent.redact, own.redact),
    level: parent.level + 1,
    budgets: [...parent.budgets, ...own.budgets],
  })
}

type Handle = Hook['handle']
const originals = new WeakMap<Handle, Handle>()

function originOf(handle: Handle): Handle {
  return originals.get(handle) ?? handle
}

/** A hook of an ancestor. What it sees spent is what was spent there and since; its own handler knows nothing of that. */
function seenFrom(hook: StackedHook, level: number): Hook {
  const { handle, when } = hook
  if (originals.has(handle)) return hook // of an ancestor of the parent, and so it looks from there already
  const look = (ctx: never): never => BaseContext.change(ctx, { level }) as never
  const inside: Handle = (ctx, next) => handle(look(ctx), next)
  originals.set(inside, handle)
  return { ...hook, handle: inside, when: when && ((ctx) => when(look(ctx))) }
}

/** A name that a hook of the agent itself has already, such as that of a limit, gets its parent's in front of it. */
function renamed(inherited: readonly Hook[], own: readonly Hook[], parent: string): readonly Hook[] {
  const taken = new Set(own.map((each) => each.name))
  return inherited.map((each) => {
    let name = each.name
    while (taken.has(name)) name = `${parent}:${name}`
    taken.add(name)
    return name === each.name ? each : { ...each, name }
  })
}

/** What either keeps out of a run stays out of it. */
function joinedRedact(parent: Redact | undefined, own: Redact | undefined): Redact | undefined {
  if (parent === undefined || own === undefined || parent === own) return parent ?? own
  return (value) => parent(own(value))
}

/** The parent says how a person is reached; what either asks about is asked. */
function joinedApproval(parent: ApprovalPolicy, own: ApprovalPolicy): ApprovalPolicy {
  return { ...parent, asksAbout: (tool) => parent.asksAbout(tool) || own.asksAbout(tool) }
}
