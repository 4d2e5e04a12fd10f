import { ENVIRONMENT_KEY } from '../../../state/agent-state.ts'
import type { JsonObject } from '../../../state/json.ts'
import { addTokens } from '../../../state/usage.ts'
import type { HookOutcome } from '../../../hooks/outcome.ts'
import { setSessionVariables, getSessionVariables } from '../../../system/processes/session-variables.ts'
import type { EventResult } from '../run/run-event.ts'

/** Merges the outcomes of two events of one trigger. Later events can only block. */
export function mergeOutcomes(first: HookOutcome, second: HookOutcome): HookOutcome {
  const appended = [...(first.state?.appended ?? []), ...(second.state?.appended ?? [])]
  const votes = [...(first.votes ?? []), ...(second.votes ?? [])]
  const spent = [first.spent, second.spent].filter((each) => each !== undefined)
  const metadata = { ...first.state?.metadata, ...second.state?.metadata, ...mergedVariables(first, second) }
  const state = {
    ...first.state,
    ...second.state,
    ...(appended.length > 0 && { appended }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
  return {
    ...first,
    ...second,
    ...(Object.keys(state).length > 0 && { state }),
    ...(votes.length > 0 && { votes }),
    ...(spent.length > 0 && { spent: spent.reduce(addTokens) }),
  }
}

/** Each outcome has stored its variables under its own id. */
function mergedVariables(...both: readonly [HookOutcome, HookOutcome]): JsonObject {
  const names = both.flatMap(({ state }) => state?.metadata?.[ENVIRONMENT_KEY] ?? [])
  if (names.length < 2) return {}
  return { [ENVIRONMENT_KEY]: setSessionVariables(Object.assign({}, ...names.map(getSessionVariables))) }
}

/** What agents of handlers have spent. */
export function spentOn(ran: EventResult['ran']): Pick<HookOutcome, 'spent'> {
  const spent = ran.flatMap(({ answer }) => answer.spent ?? [])
  return spent.length === 0 ? {} : { spent: spent.reduce(addTokens) }
}
