import type { AgentDescription } from './agent-description.ts'
import type { AgentParts } from './agent-parts.ts'

export function describeAgent(parts: AgentParts): AgentDescription {
  const { answer, asksAbout } = parts.approval
  return {
    name: parts.name,
    model: `${parts.model.provider}/${parts.model.modelId}`,
    capabilities: parts.capabilities.flatMap(({ name }) => (name === '' ? [] : [name])),
    tools: [...parts.tools.values()].map(({ name, description, concurrent, ask }) => ({
      name,
      description,
      concurrent,
      asks: ask || asksAbout(name),
    })),
    hooks: parts.plans.hooks.map(({ name, mode, triggers, priority, tool, selects, shadow }) => ({
      name,
      mode,
      triggers,
      priority,
      ...(tool !== undefined && { tools: parts.toolNames.filter(selects) }),
      ...(shadow && { shadow }),
    })),
    approval: typeof answer === 'function' ? 'ask' : answer,
    notes: [...parts.notes, ...idleHooks(parts), ...(answer === 'block' ? [noApprover] : [])],
  }
}

const noApprover =
  "There is no approver: every request for approval is blocked. Add approval('suspend') or approval(handler) to change that."

/** Hooks whose `tool` selects none of the tools, most likely because of a typo. */
function idleHooks({ plans, toolNames }: AgentParts): readonly string[] {
  return plans.hooks
    .filter(({ tool, selects }) => tool !== undefined && !toolNames.some(selects))
    .map(({ name }) => `The hook "${name}" can never fire: the agent has no tool that it selects.`)
}
