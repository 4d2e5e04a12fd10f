import { AgentError } from '../../errors.ts'
import type { AgentParts } from '../agent-parts.ts'

/** What agents are made of, for those who take one apart: an agent itself shows nothing. */
const agents = new WeakMap<object, AgentParts>()

export function rememberAgent(agent: object, parts: AgentParts): void {
  agents.set(agent, parts)
}

export function isAgent(value: object): boolean {
  return agents.has(value)
}

export function partsOf(agent: object): AgentParts {
  const parts = agents.get(agent)
  if (parts !== undefined) return parts
  throw new AgentError('AGENT_INVALID_OPTION', '"agent" must be an agent, as made by createAgent().', { value: agent })
}
