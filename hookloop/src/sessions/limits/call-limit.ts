import type { Capability } from '../../core/agent/capability.ts'
import type { InferenceRequest } from '../../core/state/inference.ts'
import { hook, inherited } from '../../core/hooks/hook.ts'
import { AgentError } from '../../errors.ts'
import { checkLimit, keyFor, noteWait, type LimitOptions } from './limit-waits.ts'
import { Slots } from './slots.ts'

/**
 * Options of `callLimit`.
 *
 * @interface
 */
export type CallLimitOptions = LimitOptions<InferenceRequest> & {
  /** How many model calls with the same key may run at once. */
  readonly maxCalls: number
  /** After this time, a call whose process died no longer counts. Default 30,000. */
  readonly leaseMs?: number
}

/**
 * Limits how many model calls run at once, over all processes that share a store. Calls of subagents and of hooks count. A call
 * that finds no place waits, and fails with MODEL_RATE_LIMITED if it finds none in time, so that `fallback` can use another
 * model.
 *
 * @example
 * createAgent({ model, store, use: [callLimit({ store, maxCalls: 20 })] })
 */
export function callLimit(options: CallLimitOptions): Capability {
  const { store, maxCalls, key = modelName, maxWaitMs = 60_000, leaseMs = 30_000, name = 'callLimit' } = options
  checkLimit('callLimit', options, ['maxCalls', 'leaseMs'])
  const slots = new Slots({ store, max: maxCalls, leaseMs })
  const limit = hook(
    'aroundInference',
    async (ctx, next) => {
      const limited = `${name} ${keyFor('callLimit', key, ctx.request)}`
      const full = `the limit "${limited}" is reached: ${maxCalls} of at most ${maxCalls} calls`
      const taken = await slots.take(limited, { id: crypto.randomUUID(), maxWaitMs, signal: ctx.signal })
      if ('used' in taken) throw callRejected(ctx.request, `${full}. None ended within ${maxWaitMs} ms`)
      noteWait(ctx, name, [taken.waitedMs, full])
      try {
        return await next()
      } finally {
        await taken.release()
      }
    },
    { name, priority: -1_000 }, // inside `retry` and `fallback`: a call that waits for its next attempt does not count
  )
  return {
    name,
    hooks: [inherited(limit)],
    notes: [`At most ${maxCalls} model calls at once with the same key, in all processes.`],
  }
}

export function modelName({ model }: InferenceRequest): string {
  return `${model.provider}/${model.modelId}`
}

/** The error of a call that a limit does not admit. It has the form of an answer with the status 429. */
export function callRejected(request: InferenceRequest, why: string, retryAfterMs?: number): AgentError {
  const { provider, modelId } = request.model
  return new AgentError('MODEL_RATE_LIMITED', `${provider}/${modelId} was not called: ${why}.`, {
    value: { provider, model: modelId, ...(retryAfterMs !== undefined && { retryAfterMs }) },
  })
}
