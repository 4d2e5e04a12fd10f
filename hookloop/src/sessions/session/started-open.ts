import { ENVIRONMENT_KEY, type AgentState } from '../../state/agent-state.ts'
import { sameJson } from '../../state/json.ts'
import { setSessionVariables, getSessionVariables } from '../../system/processes/session-variables.ts'

/** What hooks did to a state when somebody took up a conversation whose run was open. */
export type StartedOpen = {
  /** Does the same to the state that the run ends with. */
  readonly apply: (state: AgentState) => AgentState
  /** Under which name commands of the run find the variables that hooks have set, if the run knows none. */
  readonly environment: string | undefined
}

/**
 * A run that is open goes on from the state that its record begins with: with another, it could ask for something else than
 * was recorded. So what hooks change is kept back until it has ended. Variables for commands are no part of a state, and are
 * there at once, under the name that the state and the agents in it know.
 */
export function startedOpen(before: AgentState, after: AgentState): StartedOpen {
  const { [ENVIRONMENT_KEY]: known } = before.metadata
  const set = after.metadata[ENVIRONMENT_KEY]
  const hasSet = typeof set === 'string' && set !== known
  if (hasSet && typeof known === 'string') setSessionVariables(getSessionVariables(set), known)
  const said = [...after.messages].slice(before.messages.length)
  const facts = Object.entries(after.metadata).filter(
    ([key, value]) => key !== ENVIRONMENT_KEY && !sameJson(before.metadata[key] ?? null, value),
  )
  const { systemPrompt } = after
  return {
    environment: hasSet && typeof known !== 'string' ? set : undefined,
    apply: (state) => {
      const prompted = systemPrompt === before.systemPrompt ? state : state.withSystemPrompt(systemPrompt)
      const told = facts.reduce((each, [key, value]) => each.withMetadata(key, value), prompted)
      return said.reduce((each, message) => each.withMessage(message), told)
    },
  }
}
