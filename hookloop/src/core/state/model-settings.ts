import { checkOptions } from '../../values/check-options.ts'
import { optionTypes } from '../../values/option-types.ts'
import type { ModelSettings } from './inference.ts'
import { exactJson, type JsonObject } from '../../values/json.ts'

const number = { type: 'number' } as const

/** The JSON Schema of each setting. */
export const settingSchemas: { readonly [K in keyof Required<ModelSettings>]: JsonObject } = {
  temperature: number,
  topP: number,
  topK: number,
  maxOutputTokens: { type: 'integer', minimum: 1 },
  stopSequences: { type: 'array', items: { type: 'string' } },
  presencePenalty: number,
  frequencyPenalty: number,
  seed: number,
  reasoning: { enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] },
  cachePrompt: { type: 'boolean' },
  timeoutMs: number,
  idleTimeoutMs: number,
  providerOptions: { type: 'object' },
}

/** Settings that limit a call: with a text as a value, they would not. */
const limits = {
  maxOutputTokens: optionTypes.positive,
  timeoutMs: optionTypes.amount,
  idleTimeoutMs: optionTypes.amount,
}
const types = { ...Object.fromEntries(Object.keys(settingSchemas).map((name) => [name, optionTypes.any])), ...limits }

/** Settings as frozen JSON. Throws for an unknown setting: providers ignore those. */
export function checkedSettings(where: string, settings: unknown): ModelSettings {
  checkOptions(`${where}, settings`, settings, types)
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  return exactJson(Object.fromEntries(given), 'settings') as ModelSettings
}
