import { checkArgument, checkOptions } from '../../values/check-options.ts'
import { isStringList } from '../../values/option-types.ts'
import type { ModelSettings } from './inference.ts'
import { exactJson, isJsonObject, type JsonObject } from '../../values/json.ts'

type SettingType = {
  readonly isValid: (value: unknown) => boolean
  readonly expected: string
  readonly schema: JsonObject
}

const number: SettingType = {
  isValid: (value) => typeof value === 'number' && Number.isFinite(value),
  expected: 'a number',
  schema: { type: 'number' },
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** What each setting must be. */
const settingTypes: { readonly [K in keyof Required<ModelSettings>]: SettingType } = {
  temperature: number,
  topP: number,
  topK: number,
  maxOutputTokens: {
    isValid: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
    expected: 'a whole number, 1 or more',
    schema: { type: 'integer', minimum: 1 },
  },
  stopSequences: {
    isValid: isStringList,
    expected: 'a list of strings',
    schema: { type: 'array', items: { type: 'string' } },
  },
  presencePenalty: number,
  frequencyPenalty: number,
  seed: number,
  reasoning: {
    isValid: (value) => typeof value === 'string' && efforts.includes(value),
    expected: `one of ${efforts.join(', ')}`,
    schema: { enum: efforts },
  },
  cachePrompt: {
    isValid: (value) => typeof value === 'boolean',
    expected: 'true or false',
    schema: { type: 'boolean' },
  },
  timeoutMs: number,
  idleTimeoutMs: number,
  providerOptions: { isValid: isJsonObject, expected: 'an object by provider', schema: { type: 'object' } },
}

/** The JSON Schema of each setting. */
export const settingSchemas: JsonObject = Object.fromEntries(
  Object.entries(settingTypes).map(([name, { schema }]) => [name, schema]),
)

/** Settings as frozen JSON. Throws for an unknown setting: providers ignore those. */
export function checkedSettings(where: string, settings: unknown): ModelSettings {
  const place = `${where}, settings`
  checkOptions(place, settings, Object.keys(settingTypes))
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) {
    const { isValid, expected } = settingTypes[name as keyof ModelSettings]
    checkArgument(place, [name, value], isValid(value), expected)
  }
  return exactJson(Object.fromEntries(given), 'settings') as ModelSettings
}
