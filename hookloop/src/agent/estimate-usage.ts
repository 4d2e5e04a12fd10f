import type { InferenceRequest } from '../data/inference.ts'
import { noTokens, type TokenUsage } from '../data/usage.ts'

const CHARACTERS_PER_TOKEN = 4
/** What a call may write when nobody said how much: few answers of an agent are longer. */
const OUTPUT_TOKENS = 4_096

/** What a call that is under way may cost, as far as one can tell before it has ended. */
export function estimateUsage({ model, system, messages, settings }: InferenceRequest): TokenUsage {
  const characters = messages.slice().reduce((sum, message) => sum + JSON.stringify(message).length, system.length)
  const usage = {
    ...noTokens,
    inputTokens: Math.ceil(characters / CHARACTERS_PER_TOKEN),
    outputTokens: settings?.maxOutputTokens ?? OUTPUT_TOKENS,
  }
  return { ...usage, costUsd: typeof model.cost === 'function' ? model.cost(usage) : 0 }
}
