import { optionTypes } from '../values/option-types.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { getModelFailure, hook, type Capability } from '../plugin.ts'
import { checkCodes, readOptions } from '../values/check-options.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'
import { toAgentError, type ErrorCode } from '../errors.ts'

/** Options of `retry`. */
export type RetryOptions = {
  /** How often a failed call is repeated. Default 2. */
  readonly maxRetries?: number
  /** The wait before the first retry, with random jitter. It doubles with each further one. Default 500. */
  readonly backoffMs?: number
  /** The longest wait. Default 30,000. */
  readonly maxBackoffMs?: number
  /** If a provider asks for a longer wait than this, the call fails. Default 60,000. */
  readonly maxRetryAfterMs?: number
  /** The error codes that are retried. Default `retryableErrorCodes`. */
  readonly on?: readonly ErrorCode[]
}

/** Error codes that `retry` repeats a call for: failures that may not happen the next time. */
export const retryableErrorCodes = [
  'MODEL_RATE_LIMITED',
  'MODEL_OVERLOADED',
  'MODEL_TIMED_OUT',
  'MODEL_UNREACHABLE',
  'MODEL_REPLY_INVALID',
] as const satisfies readonly ErrorCode[]

const defaults = {
  maxRetries: 2,
  backoffMs: 500,
  maxBackoffMs: 30_000,
  maxRetryAfterMs: 60_000,
  on: retryableErrorCodes,
}

/**
 * Repeats a model call that failed with a temporary error, after a growing wait or the wait that the provider asks for.
 * Guards judge every attempt, and the ledger has them all.
 *
 * @example
 * createAgent({ model, use: [retry({ maxRetries: 4, backoffMs: 1_000 })] })
 */
export function retry(options: RetryOptions = {}): Capability {
  const policy: Policy = readOptions('retry', options, defaults, {
    backoffMs: optionTypes.amount,
    maxBackoffMs: optionTypes.amount,
    maxRetryAfterMs: optionTypes.amount,
  })
  checkCodes('retry', policy.on)
  const again = hook(
    'aroundInference',
    async (ctx, next) => {
      for (let retries = 0; ; retries++) {
        try {
          return await next()
        } catch (thrown) {
          const wait = waitBefore(thrown, retries, policy)
          if (wait === undefined || ctx.signal.aborted) throw thrown
          await delay(wait, undefined, { signal: ctx.signal })
        }
      }
    },
    { name: 'retry', priority: 100 },
  )
  return { name: 'retry', hooks: [again], notes: [`Model calls: up to ${policy.maxRetries} retries.`] }
}

type Policy = Required<RetryOptions>

/** How long to wait before the next retry; undefined if there is none. */
function waitBefore(thrown: unknown, retries: number, policy: Policy): number | undefined {
  const error = toAgentError(thrown, 'MODEL_FAILED')
  if (retries >= policy.maxRetries || !policy.on.includes(error.code)) return undefined
  const asked = getModelFailure(error)?.retryAfterMs
  if (asked !== undefined) return asked <= policy.maxRetryAfterMs ? Math.min(asked, MAX_TIMER_MS) : undefined
  const backoff = Math.min(policy.maxBackoffMs, policy.backoffMs * 2 ** retries, MAX_TIMER_MS)
  return backoff * (0.5 + Math.random() / 2)
}
