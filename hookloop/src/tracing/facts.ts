import type { Attributes } from '@opentelemetry/api'
import type { InferenceRequest, InferenceResponse } from '../state/inference.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import type { TokenUsage, Usage } from '../state/usage.ts'
import { attributes, operations, providerName } from './conventions.ts'

// What a span says that is not content: names, numbers, and words of our own.

/** Which model was asked: on spans, and on every measurement of a call. */
export function modelFacts({ model }: InferenceRequest): Attributes {
  return { [attributes.provider]: providerName(model.provider), [attributes.requestModel]: model.modelId }
}

/** How a model was asked. A setting of another type than the conventions have for it is left out. */
export function requestFacts(request: InferenceRequest): Attributes {
  const { settings = {}, responseFormat } = request
  const facts: Attributes = { [attributes.operation]: operations.chat, ...modelFacts(request) }
  for (const name of numbers) if (typeof settings[name] === 'number') facts[attributes[name]] = settings[name]
  if (typeof settings.maxOutputTokens === 'number') facts[attributes.maxTokens] = settings.maxOutputTokens
  if (Array.isArray(settings.stopSequences)) facts[attributes.stopSequences] = settings.stopSequences.map(String)
  if (responseFormat !== undefined) facts[attributes.outputType] = 'json'
  return facts
}

const numbers = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed'] as const

export function responseFacts({ finishReason, modelId }: InferenceResponse): Attributes {
  return {
    [attributes.finishReasons]: [finishReason],
    ...(modelId !== undefined && { [attributes.responseModel]: modelId }),
  }
}

/** Zeros are left out but for the two that everybody looks for: a provider that has no cache has not reported one. */
export function usageFacts(usage: TokenUsage): Attributes {
  const facts: Attributes = {
    [attributes.inputTokens]: usage.inputTokens,
    [attributes.outputTokens]: usage.outputTokens,
  }
  for (const name of details) if (usage[name] > 0) facts[attributes[name]] = usage[name]
  if (usage.costUsd > 0) facts[attributes.cost] = usage.costUsd
  return facts
}

const details = ['cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'] as const

export function toolFacts({ status, by, withheld, truncated, usage }: ToolExecution): Attributes {
  return {
    [attributes.toolStatus]: status,
    ...(by !== undefined && { [attributes.toolBy]: by }),
    ...(withheld === true && { [attributes.toolWithheld]: true }),
    ...(truncated === true && { [attributes.toolTruncated]: true }),
    ...(usage !== undefined && usageFacts(usage)),
  }
}

/** What was spent between two looks at a run: by models, and by tools and hooks that ask models themselves. */
export function spentBetween(before: Usage, after: Usage): Usage {
  return {
    inputTokens: after.inputTokens - before.inputTokens,
    outputTokens: after.outputTokens - before.outputTokens,
    cachedInputTokens: after.cachedInputTokens - before.cachedInputTokens,
    cacheWriteTokens: after.cacheWriteTokens - before.cacheWriteTokens,
    reasoningTokens: after.reasoningTokens - before.reasoningTokens,
    costUsd: Math.round((after.costUsd - before.costUsd) * 1e9) / 1e9, // sums of fractions are not exact
    steps: after.steps - before.steps,
    toolCalls: after.toolCalls - before.toolCalls,
  }
}
