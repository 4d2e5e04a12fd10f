import type { JSONSchema7, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { AiSdkModel, ModelRequest, ModelSettings } from '../../state/inference.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { toPrompt } from './prompt.ts'
import { isStrictSchema } from './strict-schema.ts'
import type { ToolNames } from './tool-names.ts'

type CallOptions = LanguageModelV4CallOptions

/** What a model is called with, and what had to be left out of it. */
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

/** What is handed on as it is. */
const handedOn = [
  'temperature',
  'topP',
  'topK',
  'maxOutputTokens',
  'stopSequences',
  'presencePenalty',
  'frequencyPenalty',
  'seed',
] as const

/** What is for the way to the model, not for the model. */
const ours: readonly string[] = ['cachePrompt', 'timeoutMs', 'idleTimeoutMs', 'providerOptions']

function sampling(model: AiSdkModel, settings: ModelSettings, warnings: string[]): Partial<CallOptions> {
  const options: { [name: string]: unknown } = {}
  for (const [name, value] of Object.entries(settings)) {
    if (ours.includes(name)) continue
    if (handedOn.includes(name as 'seed')) options[name] = value
    else if (name === 'reasoning' && model.specificationVersion === 'v4') options[name] = value
    else warnings.push(`The setting "${name}" is not one that ${model.provider} can be given; it was left out.`)
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
 * What only one provider understands. OpenAI is told not to keep the conversation: what the model sees is what the
 * state says, also after a hook has changed it. And it is told when a schema is not one it takes by the letter.
 */
function providerOptionsOf(
  { provider }: AiSdkModel,
  { providerOptions = {} }: ModelSettings,
  responseFormat: JsonObject | undefined,
): ProviderOptions {
  for (const [name, options] of Object.entries(providerOptions)) {
    if (isJsonObject(options)) continue
    throw new AgentError('MODEL_REJECTED', `providerOptions are by provider: { "${name}": { … } }.`, { value: options })
  }
  const given = providerOptions as ProviderOptions
  const family = provider.split('.')[0]!
  // OpenAI's adapter may go by any name, and looks in one place only: under `azure` if it is that and something is there.
  const isOpenAi = provider.endsWith('.responses') && family !== 'xai'
  const place = isOpenAi && !(family === 'azure' && given['openai'] === undefined) ? 'openai' : family
  const schema = responseFormat?.['type'] === 'json' ? responseFormat['schema'] : responseFormat
  const loose = schema !== undefined && !isStrictSchema(schema)
  const ours = {
    ...(isOpenAi && { store: false }),
    ...(loose && (isOpenAi || takesSchemas.has(family)) && { strictJsonSchema: false }),
  }
  return Object.keys(ours).length === 0 ? given : { ...given, [place]: { ...ours, ...given[place] } }
}

type ProviderOptions = { [provider: string]: JsonObject }

/** Families whose adapters hold a model to a schema by the letter unless they are told not to. */
const takesSchemas: ReadonlySet<string> = new Set(['openai', 'azure', 'groq', 'ollama', 'openai-compatible'])
