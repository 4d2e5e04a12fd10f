import type { Mode } from '../hooks/draft.ts'
import type { AgentParts } from './parts.ts'

/** What an agent consists of, as data: for people who want to know what will apply before they run it. */
export type AgentDescription = {
  readonly name: string
  readonly model: string
  readonly tools: readonly {
    readonly name: string
    readonly description: string
    readonly concurrent: boolean
    readonly asks: boolean
  }[]
  readonly hooks: readonly {
    readonly name: string
    readonly mode: Mode
    readonly triggers: readonly string[]
    readonly priority: number
    /** The tools its `tool` option selects; an empty list means that it can never fire. */
    readonly tools?: readonly string[]
    /** It decides nothing; what it would have decided is in the ledger. */
    readonly shadow?: true
  }[]
  readonly approval: 'deny' | 'suspend' | 'ask'
  readonly notes: readonly string[]
}

export function describeAgent(parts: AgentParts): AgentDescription {
  const { answer, asksAbout } = parts.approval
  return {
    name: parts.name,
    model: `${parts.model.provider}/${parts.model.modelId}`,
    tools: [...parts.tools.values()].map(({ name, description, concurrent, ask }) => ({
      name,
      description,
      concurrent,
      asks: ask || asksAbout(name),
    })),
    hooks: parts.stack.hooks.map(({ name, mode, triggers, priority, tool, selects, shadow }) => ({
      name,
      mode,
      triggers,
      priority,
      ...(tool !== undefined && { tools: parts.toolNames.filter(selects) }),
      ...(shadow && { shadow }),
    })),
    approval: typeof answer === 'function' ? 'ask' : answer,
    notes: [...parts.notes, ...idleHooks(parts), ...(answer === 'deny' ? [nobody] : [])],
  }
}

const nobody =
  "Nobody can be asked: every question is answered with no. Add approval('suspend') or approval(handler) to change that."

/** A pattern that selects no tool is most likely a mistake in a name, and its hook guards nothing. */
function idleHooks({ stack, toolNames }: AgentParts): readonly string[] {
  return stack.hooks
    .filter(({ tool, selects }) => tool !== undefined && !toolNames.some(selects))
    .map(({ name }) => `The hook "${name}" can never fire: the agent has no tool that it selects.`)
}
