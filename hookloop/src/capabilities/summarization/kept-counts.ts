import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type Json } from '../../state/json.ts'
import { noTokens } from '../../state/usage.ts'
import type { Scale } from './scale.ts'

export const SUMMARIZATION_KEY = 'hookloop.summarization'

/** What is kept in the state's metadata: nothing that changes with every step. */
export type Kept = {
  /** Tokens of a call that are not of its messages: the system prompt and the tools. */
  readonly fixed?: number
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

/**
 * How many tokens a conversation has: what the provider counted with the last step, and a guess at what was said since.
 * All of it is guessed before the first step, where the provider counts nothing, and where the conversation is another.
 */
export function measured({ messages, lastStep }: AgentState, { fixed }: Kept, scale: Scale): number {
  const { inputTokens, outputTokens, reasoningTokens } = lastStep?.usage ?? noTokens
  const seen = (lastStep?.messageCount ?? 0) + 1 // and the answer
  if (inputTokens === 0 || fixed === undefined || seen > messages.length) return scale.sum(messages).all
  const counted = Math.max(0, inputTokens - fixed) + Math.max(0, outputTokens - reasoningTokens)
  return messages.slice(seen).reduce((sum, message) => sum + scale.weigh(message), counted)
}
