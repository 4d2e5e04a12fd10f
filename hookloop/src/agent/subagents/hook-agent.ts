import { AgentState } from '../../state/agent-state.ts'
import { toInput } from '../../state/message.ts'
import { liveEffects } from '../../effects/effects.ts'
import type { HookHost } from '../../hooks/base-context.ts'
import { guard, type Hook } from '../../hooks/hook.ts'
import { HookStack, type StackedHook } from '../../hooks/stack.ts'
import { beginRun } from '../loop/start.ts'
import { aboveChild } from './child-budget.ts'
import { childParts, metadataInside } from './child-parts.ts'
import { Turns } from './parent-link.ts'
import { RunContext } from '../loop/run-context.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { Run } from '../run.ts'

/** Where the metadata of an agent that works for a hook say who it is. */
const INSPECTOR_KEY = 'hookloop.inspector'

/** Whether an agent at work for a hook is meant, or one that it has called. */
export function isInspecting({ metadata }: AgentState): boolean {
  return metadata[INSPECTOR_KEY] !== undefined
}

/** Who is to look into something for a hook. */
export type HookAgent = {
  readonly name: string
  /** An agent, or what one is to be made of. The same object for the same agent, every time. */
  readonly to: object
  readonly input: string
  /** Cuts it off. */
  readonly signal: AbortSignal
}

/**
 * Sets an agent to work for a hook and waits for its end. It has the guards, the observers and the limits of the run it
 * looks into. Those that set agents to work themselves would call themselves without end: what they would judge is
 * blocked there. What it does is not recorded here: whoever calls this records what comes of it. Undefined where there
 * is no run.
 */
export async function runForHook(host: HookHost, { name, to, input, signal }: HookAgent): Promise<Run | undefined> {
  if (!(host instanceof RunContext)) return undefined
  const parts = childParts(withoutHookAgents(host.parts), { to, name })
  const effects = liveEffects()({ signal, emit: undefined })
  const state = AgentState.create({
    agentId: effects.newId(),
    parentId: host.state.agentId,
    systemPrompt: parts.instructions,
    metadata: { ...metadataInside(host.state, to), [INSPECTOR_KEY]: name },
  })
  const place = { agent: name, step: host.step, call: `hook:${name}` }
  const family = {
    path: [...(host.family?.path ?? []), place],
    above: host.opened ? aboveChild(host, { index: 0, of: 1 }) : (host.family?.above ?? []),
    questions: new Turns(),
    letStop: () => Promise.resolve([]),
  }
  return beginRun(new RunContext(parts, effects, state, { family }), toInput(input))
}

/** A guard that cannot be asked is a no: a call that it would have judged does not run because nobody did. */
function blocksInside({ name, mode, triggers, tool }: StackedHook): readonly Hook[] {
  if (mode !== 'guard' || !triggers.includes('beforeToolUse')) return []
  const why = `Not run: "${name}" has an agent judge such calls, and this one would be made by such an agent.`
  const blocks = guard('beforeToolUse', (ctx) => ctx.block(why), { name, ...(tool !== undefined && { tool }) })
  return [blocks]
}

const without = new WeakMap<AgentParts, AgentParts>()

function withoutHookAgents(parts: AgentParts): AgentParts {
  let fewer = without.get(parts)
  if (fewer === undefined) {
    const hooks = parts.stack.hooks.flatMap((each) => (each.action?.kind === 'subagent' ? blocksInside(each) : [each]))
    fewer = Object.freeze({ ...parts, stack: new HookStack(hooks, parts.toolNames) })
    without.set(parts, fewer)
  }
  return fewer
}
