import { AgentState } from '../data/agent-state.ts'
import { toInput } from '../data/message.ts'
import { liveEffects } from '../effects.ts'
import type { HookHost } from '../hooks/draft.ts'
import { HookStack } from '../hooks/stack.ts'
import { beginRun } from './begin.ts'
import { aboveChild } from './child-budget.ts'
import { childParts } from './child-parts.ts'
import { Turns } from './family.ts'
import { LiveRun } from './live-run.ts'
import type { AgentParts } from './parts.ts'
import type { Run } from './run.ts'

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
 * looks into, but none of the hooks that set agents to work: else each of them would call itself. What it does is not
 * recorded here: whoever calls this records what comes of it. Undefined where there is no run.
 */
export async function runForHook(host: HookHost, { name, to, input, signal }: HookAgent): Promise<Run | undefined> {
  if (!(host instanceof LiveRun)) return undefined
  const parts = childParts(withoutHookAgents(host.parts), { to, name })
  const effects = liveEffects()({ signal, emit: undefined })
  const state = AgentState.create({
    agentId: effects.newId(),
    parentId: host.state.agentId,
    systemPrompt: parts.instructions,
    metadata: host.state.metadata,
  })
  const place = { agent: name, step: host.step, call: `hook:${name}` }
  const family = {
    path: [...(host.family?.path ?? []), place],
    above: host.opened ? aboveChild(host, { index: 0, of: 1 }) : (host.family?.above ?? []),
    questions: new Turns(),
    letStop: () => Promise.resolve([]),
  }
  return beginRun(new LiveRun(parts, effects, state, { family }), toInput(input))
}

const without = new WeakMap<AgentParts, AgentParts>()

function withoutHookAgents(parts: AgentParts): AgentParts {
  let fewer = without.get(parts)
  if (fewer === undefined) {
    const hooks = parts.stack.hooks.filter(({ action }) => action?.kind !== 'subagent')
    fewer = Object.freeze({ ...parts, stack: new HookStack(hooks, parts.toolNames) })
    without.set(parts, fewer)
  }
  return fewer
}
