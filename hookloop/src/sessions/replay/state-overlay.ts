import { AgentState } from '../../state/agent-state.ts'
import { sameJson } from '../../state/json.ts'
import type { List } from '../../state/list.ts'
import type { Message } from '../../state/message.ts'
import { applyChange, stateChange, type StateChange } from '../../state/state-diff.ts'

/** How the changed hooks would have left the state, compared with how the recorded hooks left it. */
export class StateOverlay {
  #change: StateChange = {}
  #conversation: { readonly was: List<Message>; readonly would: List<Message> } | undefined

  /** A recorded state with what the changed hooks would have put into it; the same object if that is nothing. */
  apply(state: AgentState): AgentState {
    const next = applyChange(state, this.#change)
    const { was, would } = this.#conversation ?? {}
    if (was === undefined || would === undefined || !state.messages.extends(was)) return next // rewritten since
    return AgentState.patch(next, { messages: would.concat(state.messages.slice(was.length)) })
  }

  update(was: AgentState, would: AgentState): void {
    const { appended, messages, ...change } = stateChange(was, would, sameJson)
    this.#change = change
    this.#conversation = (appended ?? messages) === undefined ? undefined : { was: was.messages, would: would.messages }
  }
}
