import { checkOptions } from '../../values/check-options.ts'

/** The usage of one model call. Input includes cached input, output includes reasoning. */
export type TokenUsage = {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Part of the input: read from the prompt cache of the provider, and written to it. */
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  /** Part of the output. */
  readonly reasoningTokens: number
  readonly costUsd: number
}

/** The usage of a run: tokens and cost of model calls, steps, and tool calls. */
export type Usage = TokenUsage & { readonly steps: number; readonly toolCalls: number }

export const noTokens: TokenUsage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
})

export const noUsage: Usage = Object.freeze({ ...noTokens, steps: 0, toolCalls: 0 })

/** The sum of two usages. */
export function addUsage(a: Usage, b: Partial<Usage>): Usage {
  return Object.freeze({
    inputTokens: a.inputTokens + (b.inputTokens ?? 0),
    outputTokens: a.outputTokens + (b.outputTokens ?? 0),
    cachedInputTokens: a.cachedInputTokens + (b.cachedInputTokens ?? 0),
    cacheWriteTokens: a.cacheWriteTokens + (b.cacheWriteTokens ?? 0),
    reasoningTokens: a.reasoningTokens + (b.reasoningTokens ?? 0),
    costUsd: a.costUsd + (b.costUsd ?? 0),
    steps: a.steps + (b.steps ?? 0),
    toolCalls: a.toolCalls + (b.toolCalls ?? 0),
  })
}

/** The usage between two points in time. */
export function subtractUsage(later: Usage, earlier: Usage): Usage {
  return Object.freeze({
    inputTokens: later.inputTokens - earlier.inputTokens,
    outputTokens: later.outputTokens - earlier.outputTokens,
    cachedInputTokens: later.cachedInputTokens - earlier.cachedInputTokens,
    cacheWriteTokens: later.cacheWriteTokens - earlier.cacheWriteTokens,
    reasoningTokens: later.reasoningTokens - earlier.reasoningTokens,
    costUsd: later.costUsd - earlier.costUsd,
    steps: later.steps - earlier.steps,
    toolCalls: later.toolCalls - earlier.toolCalls,
  })
}

export function addTokens(a: TokenUsage, b: TokenUsage): TokenUsage {
  return Object.freeze({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    costUsd: a.costUsd + b.costUsd,
  })
}

/** Input and output tokens together. */
export function totalTokens(usage: TokenUsage): number {
  return usage.inputTokens + usage.outputTokens
}

/** Reported usage as valid amounts: a negative or infinite number would disable a limit. */
export function toTokens(reported: { readonly [K in keyof TokenUsage]?: unknown }): TokenUsage {
  return Object.freeze({
    inputTokens: amount(reported.inputTokens),
    outputTokens: amount(reported.outputTokens),
    cachedInputTokens: amount(reported.cachedInputTokens),
    cacheWriteTokens: amount(reported.cacheWriteTokens),
    reasoningTokens: amount(reported.reasoningTokens),
    costUsd: amount(reported.costUsd),
  })
}

/**
 * What a hook or a tool reports to have spent. An amount under another name would not be counted, and no limit would apply to
 * it, so it throws. The other fields of usage objects of Hookloop and of the AI SDK are accepted.
 */
export function spentTokens(usage: Partial<TokenUsage>, where = 'spend'): TokenUsage {
  checkOptions(where, usage, usageNames)
  return toTokens(usage)
}

const usageNames = [...Object.keys(noUsage), 'totalTokens', 'inputTokenDetails', 'outputTokenDetails', 'raw']

function amount(value: unknown): number {
  return isAmount(value) ? value : 0
}

/** Whether a value counts as an amount of tokens or of money. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < Infinity
}
