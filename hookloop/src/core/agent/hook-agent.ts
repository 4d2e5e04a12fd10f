import { AgentState } from '../state/agent-state.ts'
import { toInput } from '../state/message.ts'
import { looseEffects } from '../effects/effects.ts'
import type { ActionContext } from '../hooks/action.ts'
import { BaseContext } from '../hooks/base-context.ts'
import { guard, type Hook } from '../hooks/hook.ts'
import { HookPlans, type PlannedHook } from '../hooks/hook-plans.ts'
import type { AgentParts } from './agent-parts.ts'
import { RunContext } from '../context/run-context.ts'
import { SerialQueue } from '../context/serial-queue.ts'
import { startRun } from '../loop/drive.ts'
import type { Run } from './run.ts'
import { childParts, inheritedMetadata } from '../subagents/child-parts.ts'
import { ancestorsOfChild } from '../subagents/child-run.ts'

/** The metadata key that marks an agent started by a hook, with its name. */
const INSPECTOR_KEY = 'hookloop.inspector'

/** Whether a state belongs to an agent that was started by a hook, or to a subagent of it. */
export function isInspecting({ metadata }: AgentState): boolean {
  return metadata[INSPECTOR_KEY] !== undefined
}

/** An agent that a hook starts. */
export type HookAgent = {
  readonly name: string
  /** An agent, or its definition. Pass the same object each time for the same agent. */
  readonly to: object
  readonly input: string
  /** Cancels it. */
  readonly signal: AbortSignal
}

/**
 * Runs an agent for a hook. It has the guards, the observers and the limits of the run that the hook is in. Guards that
 * start agents themselves would recurse, so what they would decide on is blocked there. Its effects are not recorded; the
 * caller records the result. Undefined where there is no run.
 */
export async function runForHook(ctx: ActionContext, { name, to, input, signal }: HookAgent): Promise<Run | undefined> {
  const host = BaseContext.hostOf(ctx)
  if (!(host instanceof RunContext)) return undefined
  const parts = childParts(withoutHookAgents(host.parts), { to, name })
  const effects = looseEffects({ signal })
  const state = AgentState.create({
    agentId: effects.agentId,
    parentId: host.state.agentId,
    systemPrompt: parts.instructions,
    metadata: { ...inheritedMetadata(host.state, to), [INSPECTOR_KEY]: name },
  })
  const place = { agent: name, step: host.step, call: `hook:${name}` }
  const parent = {
    path: [...(host.parent?.path ?? []), place],
    conversation: host.conversation,
    ancestors: host.hasExecution ? ancestorsOfChild(host, { index: 0, of: 1 }) : (host.ancestors ?? []),
    approvals: new SerialQueue(),
  }
  effects.journal.log.root.state = state
  return startRun(new RunContext(parts, effects, state, { parent }), toInput(input))
}

/** A guard that starts agents cannot run inside such an agent. It fails closed: the calls it would decide on are blocked. */
function blocksInside({ name, mode, triggers, tool }: PlannedHook): readonly Hook[] {
  if (mode !== 'guard' || !triggers.includes('beforeToolUse')) return []
  const why = `Not run: "${name}" starts an agent to decide on such calls, and this call is made by such an agent.`
  const blocks = guard('beforeToolUse', (ctx) => ctx.block(why), { name, ...(tool !== undefined && { tool }) })
  return [blocks]
}

const without = new WeakMap<AgentParts, AgentParts>()

function withoutHookAgents(parts: AgentParts): AgentParts {
  let fewer = without.get(parts)
  if (fewer === undefined) {
    const hooks = parts.plans.hooks.flatMap((each) => (each.action?.kind === 'subagent' ? blocksInside(each) : [each]))
    fewer = Object.freeze({ ...parts, plans: new HookPlans(hooks, parts.toolNames) })
    without.set(parts, fewer)
  }
  return fewer
}
