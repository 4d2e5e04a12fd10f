import type { JSONSchema7, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { AiSdkModel, ModelRequest, ModelSettings } from '../../core/state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { toPrompt } from './prompt.ts'
import type { ToolNames } from './tool-names.ts'

type CallOptions = LanguageModelV4CallOptions

/** The options to call a model with, and warnings about settings that had to be left out. */
export function toCallOptions(
  model: AiSdkModel,
  request: ModelRequest,
  names: ToolNames,
): { readonly options: CallOptions; readonly warnings: readonly string[] } {
  const { settings = {}, tools, toolChoice, responseFormat } = request
  const warnings: string[] = []
  const options: CallOptions = {
    prompt: toPrompt(request, names, { version: model.specificationVersion, cache: settings.cachePrompt === true }),
    ...sampling(model, settings, warnings),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        type: 'function' as const,
        name: names.sent(name),
        description,
        inputSchema: inputSchema as JSONSchema7,
      })),
      toolChoice: toolChoiceOf(toolChoice, names),
    }),
    ...(responseFormat !== undefined && { responseFormat: responseFormatOf(responseFormat) }),
    providerOptions: providerOptionsOf(model, settings, responseFormat),
  }
  return { options, warnings }
}

/** Settings that are passed on unchanged. */
const passedOn = [
  'temperature',
  'topP',
  'topK',
  'maxOutputTokens',
  'stopSequences',
  'presencePenalty',
  'frequencyPenalty',
  'seed',
] as const

/** Settings for this adapter, not for the model. */
const adapterSettings: readonly string[] = ['cachePrompt', 'timeoutMs', 'idleTimeoutMs', 'providerOptions']

function sampling(model: AiSdkModel, settings: ModelSettings, warnings: string[]): Partial<CallOptions> {
  const options: { [name: string]: unknown } = {}
  for (const [name, value] of Object.entries(settings)) {
    if (adapterSettings.includes(name)) continue
    if (passedOn.includes(name as 'seed')) options[name] = value
    else if (name === 'reasoning' && model.specificationVersion === 'v4') options[name] = value
    else warnings.push(`${model.provider} does not support the setting "${name}". It was left out.`)
  }
  return options
}

function toolChoiceOf(choice: ModelRequest['toolChoice'], names: ToolNames): NonNullable<CallOptions['toolChoice']> {
  if (choice === undefined) return { type: 'auto' }
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: names.sent(choice.tool) }
}

/** `{ type: 'json', schema }`, `{ type: 'text' }`, or a JSON Schema on its own. */
function responseFormatOf(format: JsonObject): NonNullable<CallOptions['responseFormat']> {
  if (format['type'] === 'text' && Object.keys(format).length === 1) return { type: 'text' }
  if (format['type'] !== 'json') return { type: 'json', schema: format as JSONSchema7 }
  return format as NonNullable<CallOptions['responseFormat']>
}

/**
 * Options for one provider. OpenAI must not store the conversation: the model sees what the state contains, even after
 * a hook has changed it. Strict mode is turned off for schemas that OpenAI cannot enforce.
 */
function providerOptionsOf(
  { provider }: AiSdkModel,
  { providerOptions = {} }: ModelSettings,
  responseFormat: JsonObject | undefined,
): ProviderOptions {
  for (const [name, options] of Object.entries(providerOptions)) {
    if (isJsonObject(options)) continue
    throw new AgentError(
      'MODEL_REJECTED',
      `"providerOptions" must have an object for each provider: { "${name}": { … } }.`,
      { value: options },
    )
  }
  const given = providerOptions as ProviderOptions
  const family = provider.split('.')[0]!
  // OpenAI's adapter may have any name and reads one key only: `azure` if it is Azure's and that key exists.
  const isOpenAi = provider.endsWith('.responses') && family !== 'xai'
  const place = isOpenAi && !(family === 'azure' && given['openai'] === undefined) ? 'openai' : family
  const schema = responseFormat?.['type'] === 'json' ? responseFormat['schema'] : responseFormat
  const loose = schema !== undefined && !isStrictSchema(schema)
  const ours = {
    ...(isOpenAi && { store: false }),
    ...(loose && (isOpenAi || strictFamilies.has(family)) && { strictJsonSchema: false }),
  }
  return Object.keys(ours).length === 0 ? given : { ...given, [place]: { ...ours, ...given[place] } }
}

type ProviderOptions = { [provider: string]: JsonObject }

/** Families whose adapters use strict mode by default. */
const strictFamilies: ReadonlySet<string> = new Set(['openai', 'azure', 'groq', 'ollama', 'openai-compatible'])

/** The keywords that OpenAI enforces in strict mode. Any other is rejected there. */
const strictKeywords: ReadonlySet<string> = new Set(
  (
    'type enum const title description properties required additionalProperties items anyOf $ref ' +
    '$defs definitions format pattern minItems maxItems minimum maximum exclusiveMinimum exclusiveMaximum multipleOf'
  ).split(' '),
)

/**
 * Whether OpenAI can enforce a schema in strict mode: it has only supported keywords, every object is closed, and every
 * property is required. Other schemas are sent without strict mode; the answer is validated here in any case.
 */
function isStrictSchema(schema: Json): boolean {
  if (!isJsonObject(schema)) return true
  if (!Object.keys(schema).every((key) => strictKeywords.has(key)) || !isClosed(schema)) return false
  const { properties, $defs, definitions, items, anyOf } = schema
  const inner = [properties, $defs, definitions].flatMap((each) => (isJsonObject(each) ? Object.values(each) : []))
  return [...inner, ...(items === undefined ? [] : [items]), ...(Array.isArray(anyOf) ? anyOf : [])].every(
    isStrictSchema,
  )
}

function isClosed({ type, properties = {}, required = [], additionalProperties }: JsonObject): boolean {
  if (type !== 'object' && !(Array.isArray(type) && type.includes('object'))) return true
  const names = isJsonObject(properties) ? Object.keys(properties) : []
  return additionalProperties === false && names.every((name) => Array.isArray(required) && required.includes(name))
}
