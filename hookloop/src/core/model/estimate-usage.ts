import { messagesOf, type InferenceRequest } from '../state/inference.ts'
import type { EntryWarning } from '../state/ledger.ts'
import type { FoldCache } from '../state/list.ts'
import type { Message, Part } from '../state/message.ts'
import { noTokens, type TokenUsage } from '../state/usage.ts'

const CHARACTERS_PER_TOKEN = 4
/** The assumed length of an answer without a limit: few answers of an agent are longer. */
const OUTPUT_TOKENS = 4_096

/** The warning of a model whose provider reports no usage. */
export const USAGE_ESTIMATED = 'The provider did not report token usage. It is estimated, so that limits apply.'

/** The warning about a call that was aborted, or failed while its answer was streamed. */
export const incompleteCall: EntryWarning = Object.freeze({
  code: 'USAGE_ESTIMATED',
  message: 'A model call was started and did not complete. Its usage is estimated.',
})

/** A warning of a model, for the ledger. */
export function toWarning(message: string): EntryWarning {
  return { code: message === USAGE_ESTIMATED ? 'USAGE_ESTIMATED' : 'MODEL_WARNING', message }
}

/** An estimate of what a running call may cost. */
export function estimateUsage(request: InferenceRequest): TokenUsage {
  const { model, settings } = request
  const usage = {
    ...noTokens,
    inputTokens: estimateInput(request),
    outputTokens: settings?.maxOutputTokens ?? OUTPUT_TOKENS,
  }
  return { ...usage, costUsd: typeof model.cost === 'function' ? model.cost(usage) : 0 }
}

/** An estimate of what a call has cost that was started and did not complete: the prompt, and what was streamed of the answer. */
export function estimateStarted(request: InferenceRequest, streamedChars: number): TokenUsage {
  const { model } = request
  const usage = {
    ...noTokens,
    inputTokens: estimateInput(request),
    outputTokens: Math.ceil(streamedChars / CHARACTERS_PER_TOKEN),
  }
  return { ...usage, costUsd: typeof model.cost === 'function' ? model.cost(usage) : 0 }
}

/** An estimate of the tokens of a conversation. */
export function estimateInput(request: Pick<InferenceRequest, 'system' | 'messages'>): number {
  const system = Math.ceil(request.system.length / CHARACTERS_PER_TOKEN)
  return system + messagesOf(request).fold(estimates, 0, (sum, { content }) => sum + estimateTokens(content))
}

const estimates: FoldCache<Message, number> = new WeakMap()

/** The assumed size of a file. Its bytes say nothing about its tokens. */
const FILE_TOKENS = 1_500

/** An estimate of the tokens of a message. */
export function estimateTokens(content: readonly Part[]): number {
  const files = content.filter((part) => part.type === 'file').length
  const rest = JSON.stringify(content.filter((part) => part.type !== 'file')).length
  return Math.ceil(rest / CHARACTERS_PER_TOKEN) + files * FILE_TOKENS
}
