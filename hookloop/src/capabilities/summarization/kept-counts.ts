import type { AgentState } from '../../data/agent-state.ts'
import { isJsonObject, type Json } from '../../data/json.ts'
import type { List } from '../../data/list.ts'
import type { Message } from '../../data/message.ts'
import type { Scale } from './scale.ts'

export const SUMMARIZATION_KEY = 'hookloop.summarization'

/** What is kept between steps, in the state's metadata. */
export type Kept = {
  /** Tokens of a call that are not of its messages: the system prompt and the tools. */
  readonly fixed?: number
  /** Tokens of the first `at` messages, as the provider counted them with the last call. */
  readonly tokens?: number
  readonly at?: number
  /** How often it was tried in vain, and how long the conversation is to be before it is tried again. */
  readonly tries?: number
  readonly notBefore?: number
  /** The model did not take the last request, because it was too long. */
  readonly overflowed?: true
}

export function keptIn({ metadata }: AgentState): Kept {
  const kept: Json | undefined = metadata[SUMMARIZATION_KEY]
  return isJsonObject(kept) ? kept : {}
}

export function withKept(state: AgentState, kept: Kept): AgentState {
  return state.withMetadata(SUMMARIZATION_KEY, kept)
}

/** How many tokens a conversation has: what the provider counted, and a guess at what was said since. */
export function measured(messages: List<Message>, { tokens, at }: Kept, scale: Scale): number {
  if (tokens === undefined || at === undefined || at > messages.length) return scale.sum(messages).all
  return messages.slice(at).reduce((sum, message) => sum + scale.weigh(message), tokens)
}
