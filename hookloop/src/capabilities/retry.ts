import { setTimeout as delay } from 'node:timers/promises'
import type { Capability } from '../agent/capability.ts'
import { checkCodes, checkOptions, definedOptions, invalidOption } from '../agent/check-options.ts'
import { getModelFailure } from '../state/inference.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'
import { toAgentError, type ErrorCode } from '../errors.ts'
import { hook } from '../hooks/hook.ts'

export type RetryOptions = {
  /** Calls in all, the first included. Default 3. */
  readonly attempts?: number
  /** The first wait; each further one doubles, up to the longest. A little chance keeps many runs apart. */
  readonly backoffMs?: number
  readonly maxBackoffMs?: number
  /** A provider that asks to wait longer than this is not waited for. Default 60,000 ms. */
  readonly maxRetryAfterMs?: number
  /** Which failures are worth another try. By default those that may pass by themselves. */
  readonly on?: readonly ErrorCode[]
}

/** Failures that may be gone the next time. */
export const retryableErrorCodes = [
  'MODEL_RATE_LIMITED',
  'MODEL_OVERLOADED',
  'MODEL_TIMED_OUT',
  'MODEL_UNREACHABLE',
  'MODEL_REPLY_INVALID',
] as const satisfies readonly ErrorCode[]

const defaults = { attempts: 3, backoffMs: 500, maxBackoffMs: 30_000, maxRetryAfterMs: 60_000, on: retryableErrorCodes }

/**
 * Calls the model again when it failed in a way that may pass, after a wait that grows or that the provider asked for.
 * Guards judge each attempt, and each is in the ledger.
 */
export function retry(options: RetryOptions = {}): Capability {
  checkOptions('retry', options, Object.keys(defaults))
  const policy = { ...defaults, ...definedOptions(options) }
  check(policy)
  const again = hook(
    'aroundInference',
    async (ctx, next) => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await next()
        } catch (thrown) {
          const wait = waitBefore(thrown, attempt, policy)
          if (wait === undefined || ctx.signal.aborted) throw thrown
          await delay(wait, undefined, { signal: ctx.signal })
        }
      }
    },
    { name: 'retry', priority: 100 },
  )
  return { name: 'retry', hooks: [again], notes: [`Model calls: up to ${policy.attempts} attempts.`] }
}

type Policy = Required<RetryOptions>

/** How long to wait before another attempt, or nothing when there is none. */
function waitBefore(thrown: unknown, attempt: number, policy: Policy): number | undefined {
  const error = toAgentError(thrown, 'MODEL_FAILED')
  if (attempt >= policy.attempts || !policy.on.includes(error.code)) return undefined
  const asked = getModelFailure(error)?.retryAfterMs
  if (asked !== undefined) return asked <= policy.maxRetryAfterMs ? Math.min(asked, MAX_TIMER_MS) : undefined
  const backoff = Math.min(policy.maxBackoffMs, policy.backoffMs * 2 ** (attempt - 1), MAX_TIMER_MS)
  return backoff * (0.5 + Math.random() / 2)
}

function check({ attempts, on, ...waits }: Policy): void {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw invalidOption('retry', '"attempts" must be a whole number from 1 up', attempts)
  checkCodes('retry', on)
  for (const [name, ms] of Object.entries(waits)) {
    if (!(ms >= 0)) throw invalidOption('retry', `"${name}" must be a number from 0 up`, ms)
  }
}
