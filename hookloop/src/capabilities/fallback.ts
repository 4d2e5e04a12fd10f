import type { Capability } from '../agent/capability.ts'
import { checkCodes } from '../agent/check-options.ts'
import type { ModelSource } from '../state/inference.ts'
import { AgentError, toAgentError, type ErrorCode } from '../errors.ts'
import { hook } from '../hooks/hook.ts'

/** Failures that another model may not have. A refusal because of the content is not one of them: it was an answer. */
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
 * Asks other models, one after the other, when the model of the request failed. With `retry`, each of them is retried
 * before the next is asked. When all fail, the last failure is the one that counts; the ledger has them all.
 */
export function fallback(
  models: readonly ModelSource[],
  { on = fallbackErrorCodes }: { readonly on?: readonly ErrorCode[] } = {},
): Capability {
  if (!Array.isArray(models) || models.length === 0 || !models.every(isSource)) {
    throw new AgentError('AGENT_INVALID_OPTION', 'fallback: give it a list of models to fall back to.', {
      value: models,
    })
  }
  checkCodes('fallback', on)
  const elsewhere = hook(
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
    { name: 'fallback', priority: 110 }, // outside of `retry`
  )
  return {
    name: 'fallback',
    hooks: [elsewhere],
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
