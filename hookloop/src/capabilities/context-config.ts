import { hook, type Capability } from '../plugin.ts'
import { checkArgument, checkOptions } from '../values/check-options.ts'
import { isJsonObject, type JsonObject } from '../values/json.ts'

/**
 * Sets the system prompt and the response format at the start of each run. An empty value leaves the current one.
 *
 * @example
 * contextConfig({ systemPrompt: 'Answer in French.', responseFormat: { type: 'json' } })
 */
export function contextConfig(config: {
  /** The system prompt. Default: unchanged. */
  readonly systemPrompt?: string
  /** The response format sent to the model. Default: unchanged. */
  readonly responseFormat?: JsonObject
}): Capability {
  checkOptions('contextConfig', config, ['systemPrompt', 'responseFormat'])
  const { systemPrompt = '', responseFormat } = config
  checkArgument('contextConfig', ['systemPrompt', systemPrompt], typeof systemPrompt === 'string', 'a string')
  const isFormat = responseFormat === undefined || isJsonObject(responseFormat)
  checkArgument('contextConfig', ['responseFormat', responseFormat], isFormat, 'a JSON object')
  const apply = hook(
    'beforeExecution',
    (ctx) =>
      ctx.withState((state) => {
        const prompted = systemPrompt === '' ? state : state.withSystemPrompt(systemPrompt)
        const empty = responseFormat === undefined || Object.keys(responseFormat).length === 0
        return empty ? prompted : prompted.withResponseFormat(responseFormat)
      }),
    { name: 'contextConfig', bookkeeping: true, priority: 100 },
  )
  return { name: 'contextConfig', hooks: [apply] }
}
