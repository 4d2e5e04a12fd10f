import type { InferenceRequest } from '../../state/inference.ts'
import type { Part } from '../../state/message.ts'
import { noTokens, type TokenUsage } from '../../state/usage.ts'

const CHARACTERS_PER_TOKEN = 4
/** What a call may write when nobody said how much: few answers of an agent are longer. */
const OUTPUT_TOKENS = 4_096

/** What a call that is under way may cost, as far as one can tell before it has ended. */
export function estimateUsage({ model, settings, ...request }: InferenceRequest): TokenUsage {
  const usage = {
    ...noTokens,
    inputTokens: estimateInput(request),
    outputTokens: settings?.maxOutputTokens ?? OUTPUT_TOKENS,
  }
  return { ...usage, costUsd: typeof model.cost === 'function' ? model.cost(usage) : 0 }
}

/** How many tokens a conversation may have. */
export function estimateInput({ system, messages }: Pick<InferenceRequest, 'system' | 'messages'>): number {
  return messages
    .slice()
    .reduce((sum, { content }) => sum + estimateTokens(content), Math.ceil(system.length / CHARACTERS_PER_TOKEN))
}

/** What a picture or a page or two may come to; its bytes say nothing about it. */
const FILE_TOKENS = 1_500

/** How many tokens a message may have. */
export function estimateTokens(content: readonly Part[]): number {
  const files = content.filter((part) => part.type === 'file').length
  const rest = JSON.stringify(content.filter((part) => part.type !== 'file')).length
  return Math.ceil(rest / CHARACTERS_PER_TOKEN) + files * FILE_TOKENS
}
