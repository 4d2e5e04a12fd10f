import { AgentState, metadataOf, type StateFields } from '../../state/agent-state.ts'
import { sameJson, type Json, type JsonObject } from '../../state/json.ts'
import type { List } from '../../state/list.ts'
import type { Message } from '../../state/message.ts'

/** What other hooks would have put into a state, over what was recorded. */
export class StateOverlay {
  #metadata: { readonly set: JsonObject; readonly unset: readonly string[] } | undefined
  #systemPrompt: string | undefined
  #responseFormat: { readonly value: JsonObject | undefined } | undefined
  /** The conversation as it would be, in place of as much of the recorded one. */
  #messages: { readonly would: List<Message>; readonly was: List<Message> } | undefined

  /** A recorded state with what other hooks would have put into it; the very same one if that is nothing. */
  apply(state: AgentState): AgentState {
    const change: { -readonly [K in keyof StateFields]?: StateFields[K] } = {}
    if (this.#metadata !== undefined) {
      const kept = Object.entries(state.metadata).filter(([key]) => !this.#metadata!.unset.includes(key))
      change.metadata = metadataOf({ ...Object.fromEntries(kept), ...this.#metadata.set })
    }
    if (this.#systemPrompt !== undefined) change.systemPrompt = this.#systemPrompt
    if (this.#responseFormat !== undefined) change.responseFormat = this.#responseFormat.value
    const messages = this.#conversation(state.messages)
    if (messages !== undefined) change.messages = messages
    return Object.keys(change).length === 0 ? state : AgentState.patch(state, change)
  }

  /** Takes over how a state would be now, where it is so. */
  update(was: AgentState, would: AgentState): void {
    this.#metadata = metadataBetween(was.metadata, would.metadata)
    this.#systemPrompt = was.systemPrompt === would.systemPrompt ? undefined : would.systemPrompt
    this.#responseFormat = sameJson(was.responseFormat ?? null, would.responseFormat ?? null)
      ? undefined
      : { value: would.responseFormat }
    this.#messages = sameMessages(was.messages, would.messages)
      ? undefined
      : { would: would.messages, was: was.messages }
  }

  /** What was recorded since follows on what would be. If the recorded conversation was rewritten, it stands for itself. */
  #conversation(messages: List<Message>): List<Message> | undefined {
    if (this.#messages === undefined || !messages.extends(this.#messages.was)) return undefined
    return this.#messages.would.concat(messages.slice(this.#messages.was.length))
  }
}

function metadataBetween(
  was: JsonObject,
  would: JsonObject,
): { set: JsonObject; unset: readonly string[] } | undefined {
  if (was === would) return undefined
  const set = Object.entries(would).filter(([key, value]) => !sameJson(was[key] as Json, value))
  const unset = Object.keys(was).filter((key) => !Object.hasOwn(would, key))
  return set.length === 0 && unset.length === 0 ? undefined : { set: Object.fromEntries(set), unset }
}

export function sameMessages(a: List<Message>, b: List<Message>): boolean {
  if (a === b) return true
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!sameJson(a.at(i)!, b.at(i)!)) return false
  return true
}
