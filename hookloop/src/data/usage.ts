/** What was spent: tokens and money of model calls, steps taken and tool calls asked for. */
export type Usage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
  readonly steps: number
  readonly toolCalls: number
}

/** What one model call reports. */
export type TokenUsage = Pick<Usage, 'inputTokens' | 'outputTokens' | 'costUsd'>

export const noUsage: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0, costUsd: 0, steps: 0, toolCalls: 0 })

export const noTokens: TokenUsage = Object.freeze({ inputTokens: 0, outputTokens: 0, costUsd: 0 })

export function addUsage(a: Usage, b: Partial<Usage>): Usage {
  return Object.freeze({
    inputTokens: a.inputTokens + (b.inputTokens ?? 0),
    outputTokens: a.outputTokens + (b.outputTokens ?? 0),
    costUsd: a.costUsd + (b.costUsd ?? 0),
    steps: a.steps + (b.steps ?? 0),
    toolCalls: a.toolCalls + (b.toolCalls ?? 0),
  })
}

export function addTokens(a: TokenUsage, b: TokenUsage): TokenUsage {
  return Object.freeze({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsd: a.costUsd + b.costUsd,
  })
}

export function totalTokens(usage: TokenUsage): number {
  return usage.inputTokens + usage.outputTokens
}
