import { hook, type Capability, type ModelSource } from '../plugin.ts'
import { checkCodes, checkOptions, invalidOption } from '../values/check-options.ts'
import { toAgentError, type ErrorCode } from '../errors.ts'

/** Error codes after which `fallback` calls another model. `MODEL_CONTENT_FILTERED` is not one: the model did reply. */
export const fallbackErrorCodes: readonly ErrorCode[] = [
  'MODEL_RATE_LIMITED',
  'MODEL_OVERLOADED',
  'MODEL_TIMED_OUT',
  'MODEL_UNREACHABLE',
  'MODEL_REPLY_INVALID',
  'MODEL_CONTEXT_OVERFLOW',
  'MODEL_UNAUTHORIZED',
  'MODEL_REJECTED',
  'MODEL_FAILED',
]

/**
 * Calls other models in order when a model call fails. With `retry`, each model is retried before the next is called. If
 * all fail, the last error is thrown; the ledger has all of them.
 *
 * @param models The models to fall back to, in order.
 * @param options `on`: the error codes that cause a fallback. Default `fallbackErrorCodes`.
 *
 * @example
 * createAgent({ model: 'anthropic/claude-sonnet-5-5', use: [retry(), fallback(['openai/gpt-5.5'])] })
 */
export function fallback(
  models: readonly ModelSource[],
  options: { readonly on?: readonly ErrorCode[] } = {},
): Capability {
  checkOptions('fallback', options, ['on'])
  const { on = fallbackErrorCodes } = options
  if (!Array.isArray(models) || models.length === 0 || !models.every(isSource)) {
    throw invalidOption('fallback', 'the first argument must be a list of at least one model', models)
  }
  checkCodes('fallback', on)
  const callNext = hook(
    'aroundInference',
    async (ctx, next) => {
      let failure: unknown
      for (const model of [undefined, ...models]) {
        try {
          return await (model === undefined ? next() : next({ model }))
        } catch (thrown) {
          failure = thrown
          if (ctx.signal.aborted || !on.includes(toAgentError(thrown, 'MODEL_FAILED').code)) break
        }
      }
      throw failure
    },
    { name: 'fallback', priority: 110 }, // around `retry`
  )
  return {
    name: 'fallback',
    hooks: [callNext],
    models,
    notes: [`Falls back to ${models.map(nameOf).join(', then ')}.`],
  }
}

function isSource(model: unknown): boolean {
  return typeof model === 'string' || typeof (model as { provider?: unknown } | null)?.provider === 'string'
}

function nameOf(model: ModelSource): string {
  return typeof model === 'string' ? model : `${model.provider.split('.')[0]}/${model.modelId}`
}
