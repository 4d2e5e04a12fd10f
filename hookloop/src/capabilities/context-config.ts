import type { Capability } from '../agent/capability.ts'
import type { JsonObject } from '../state/json.ts'
import { hook } from '../hooks/hook.ts'

/** Sets system prompt and response format when a run begins. What is empty leaves alone what is there. */
export function contextConfig(config: {
  readonly systemPrompt?: string
  readonly responseFormat?: JsonObject
}): Capability {
  const { systemPrompt = '', responseFormat } = config
  const apply = hook(
    'beforeExecution',
    (ctx) =>
      ctx.withState((state) => {
        const prompted = systemPrompt === '' ? state : state.withSystemPrompt(systemPrompt)
        const empty = responseFormat === undefined || Object.keys(responseFormat).length === 0
        return empty ? prompted : prompted.withResponseFormat(responseFormat)
      }),
    { name: 'contextConfig', priority: 100 },
  )
  return { name: 'contextConfig', hooks: [apply] }
}
