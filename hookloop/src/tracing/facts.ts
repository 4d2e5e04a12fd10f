import type { Attributes } from '@opentelemetry/api'
import type { InferenceRequest } from '../core/state/inference.ts'
import { subtractUsage, type TokenUsage, type Usage } from '../core/state/usage.ts'
import { attributes, providerName } from './conventions.ts'

// Attributes that are not content: names, numbers, and values defined by Hookloop.

/** The model of a call, for spans and measurements. */
export function modelFacts({ model }: InferenceRequest): Attributes {
  return { [attributes.provider]: providerName(model.provider), [attributes.requestModel]: model.modelId }
}

/** The settings of a request. A setting whose type differs from the conventions is omitted. */
export function settingsFacts({ settings = {}, responseFormat }: InferenceRequest): Attributes {
  const facts: Attributes = {}
  for (const name of numbers) if (typeof settings[name] === 'number') facts[attributes[name]] = settings[name]
  if (typeof settings.maxOutputTokens === 'number') facts[attributes.maxTokens] = settings.maxOutputTokens
  if (Array.isArray(settings.stopSequences)) facts[attributes.stopSequences] = settings.stopSequences.map(String)
  if (responseFormat !== undefined) facts[attributes.outputType] = 'json'
  return facts
}

const numbers = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed'] as const

/** Zeros are omitted except for input and output tokens: a provider without a cache reports none. */
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

/** The usage between two points of a run, including model calls of tools and hooks. */
export function spentBetween(before: Usage, after: Usage): Usage {
  const spent = subtractUsage(after, before)
  return { ...spent, costUsd: Math.round(spent.costUsd * 1e9) / 1e9 } // sums of fractions are inexact
}
