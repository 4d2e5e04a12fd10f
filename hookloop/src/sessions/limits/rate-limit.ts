import { systemClock } from '../../core/effects/run-time.ts'
import { estimateUsage } from '../../core/model/estimate-usage.ts'
import type { Capability } from '../../core/agent/capability.ts'
import { getModelFailure, type InferenceRequest } from '../../core/state/inference.ts'
import { isJsonObject, type Json } from '../../values/json.ts'
import { totalTokens } from '../../core/state/usage.ts'
import { hook, inherited } from '../../core/hooks/hook.ts'
import { toAgentError } from '../../errors.ts'
import { callRejected, modelName } from './call-limit.ts'
import { checkLimit, keyFor, noteWait, type LimitOptions } from './limit-waits.ts'

/**
 * Options of `rateLimit`.
 *
 * @interface
 */
export type RateLimitOptions = LimitOptions<InferenceRequest> & {
  /** Requests per minute. Default: no limit but the answers of the provider. */
  readonly maxRequestsPerMinute?: number
  /** Input and output tokens per minute. Default: no limit but the answers of the provider. */
  readonly maxTokensPerMinute?: number
  /** The longest wait after an answer 429 that does not ask for one. The first is a second, each further one twice as long. Default 60,000. */
  readonly maxBackoffMs?: number
}

/**
 * A rate limit that processes share. When a provider answers 429, all processes wait before they call the model again, as long as
 * the provider asks for. With `maxRequestsPerMinute` and `maxTokensPerMinute`, calls are spread so that it does not come to
 * that. Calls of subagents and of hooks count. Use it with `retry`, which repeats the call that was answered 429.
 *
 * @example
 * createAgent({ model, store, use: [retry(), rateLimit({ store, maxRequestsPerMinute: 500 })] })
 */
export function rateLimit(options: RateLimitOptions): Capability {
  const { store, key = modelName, maxWaitMs = 60_000, maxBackoffMs = 60_000, name = 'rateLimit' } = options
  const { maxRequestsPerMinute: requests = Infinity, maxTokensPerMinute: tokens = Infinity } = options
  checkLimit('rateLimit', options, ['maxRequestsPerMinute', 'maxTokensPerMinute', 'maxBackoffMs'])
  /** The time that tokens take of the minute; none if they are not limited. */
  const tokensMs = (used: number): number => (MINUTE_MS * used) / tokens
  const limit = hook(
    'aroundInference',
    async (ctx, next) => {
      const limited = `${name} ${keyFor('rateLimit', key, ctx.request)}`
      const update: Update = (change) =>
        store.update(limited, (value, now = Date.now()) => change(isJsonObject(value) ? (value as Rate) : unused, now))
      const estimate = Math.min(tokens, totalTokens(estimateUsage(ctx.request)))
      const { failures, waitedMs, problem } = await admit(update, {
        cost: { requests: MINUTE_MS / requests, tokens: tokensMs(estimate) },
        maxWaitMs,
        signal: ctx.signal,
      })
      if (problem !== undefined)
        throw callRejected(ctx.request, `the limit "${limited}" is reached. ${problem.why}`, problem.retryAfterMs)
      noteWait(ctx, name, [waitedMs, `the limit "${limited}" was reached`])
      try {
        const response = await next()
        const moreMs = tokensMs(totalTokens(response.usage) - estimate)
        if (moreMs !== 0 || failures > 0)
          await update((rate) => recovered({ ...rate, tokensAt: rate.tokensAt + moreMs }, failures))
        return response
      } catch (thrown) {
        const error = toAgentError(thrown, 'MODEL_FAILED')
        if (error.code === 'MODEL_RATE_LIMITED') {
          const asked = getModelFailure(error)?.retryAfterMs
          await update((rate, now) => blocked(rate, now, { asked, failures, maxBackoffMs }))
        }
        throw thrown
      }
    },
    { name, priority: -1_100 }, // the last thing before the call
  )
  const each = Object.entries({ requests, tokens }).flatMap(([what, max]) => (max === Infinity ? [] : `${max} ${what}`))
  const most = each.length === 0 ? '' : ` At most ${each.join(' and ')} per minute.`
  return { name, hooks: [inherited(limit)], notes: [`Model calls of all processes wait after an answer 429.${most}`] }
}

/** The time that a call takes of the minute of each amount. */
type Cost = { readonly requests: number; readonly tokens: number }

/**
 * When all that was taken of each amount is paid for: up to a minute ago if nothing was, in the future if calls wait. And until
 * when the provider blocks, after how many failures in a row.
 */
type Rate = { readonly [time in 'requestsAt' | 'tokensAt' | 'blockedUntil' | 'failures']: number }
type Update = (change: (rate: Rate, now: number) => Rate) => Promise<Json>

const MINUTE_MS = 60_000
const FIRST_BACKOFF_MS = 1_000
/** A provider that asks for more is asked again after this time: one wrong answer must not stop all processes for a day. */
const MAX_BLOCK_MS = 600_000
const unused: Rate = { requestsAt: 0, tokensAt: 0, blockedUntil: 0, failures: 0 }

type Admitting = { readonly cost: Cost; readonly maxWaitMs: number; readonly signal: AbortSignal }
type Admitted = {
  readonly failures: number
  readonly waitedMs: number
  readonly problem?: { readonly why: string; readonly retryAfterMs: number }
}

/**
 * Takes what a call costs, in advance if there is nothing left, and waits until it is paid for and the provider no longer
 * blocks. So a call asks the store once, and once more after each wait.
 */
async function admit(update: Update, { cost, maxWaitMs, signal }: Admitting): Promise<Admitted> {
  const refund = (): Promise<Json> => update((rate) => plus(rate, cost, -1))
  const isInTime = (ms: number): boolean => ms <= maxWaitMs // never for NaN
  for (let waitedMs = 0; ;) {
    const isTaken = waitedMs > 0
    let [waitMs, failures, isBlocked] = [0, 0, false]
    await update((rate, now) => {
      const taken = isTaken ? rate : plus(sinceMinute(rate, cost, now), cost)
      failures = rate.failures
      isBlocked = rate.blockedUntil > now
      waitMs = Math.max(0, rate.blockedUntil - now, isTaken ? 0 : Math.max(taken.requestsAt, taken.tokensAt) - now)
      return isInTime(waitedMs + waitMs) ? taken : rate
    })
    if (!isInTime(waitedMs + waitMs)) {
      if (isTaken) await refund()
      const retryAfterMs = Math.ceil(waitMs)
      const why = `The call would wait for ${retryAfterMs} ms${isTaken ? ' more' : ''}, and may wait for ${maxWaitMs} ms`
      return { failures, waitedMs, problem: { why, retryAfterMs } }
    }
    if (waitMs === 0) return { failures, waitedMs }
    // Those that were blocked together do not call together: each waits up to a quarter longer.
    const ms = Math.ceil(isBlocked ? waitMs * (1 + Math.random() / 4) : waitMs)
    await systemClock.sleep(ms, signal)
    if (signal.aborted) await refund()
    signal.throwIfAborted()
    waitedMs += ms
  }
}

/** What was not used in the last minute is available, and no more. An amount that is not limited is not counted. */
function sinceMinute(rate: Rate, cost: Cost, now: number): Rate {
  const since = (at: number, each: number): number => (each === 0 ? at : Math.max(at, now - MINUTE_MS))
  return {
    ...rate,
    requestsAt: since(rate.requestsAt, cost.requests),
    tokensAt: since(rate.tokensAt, cost.tokens),
  }
}

function plus(rate: Rate, cost: Cost, times = 1): Rate {
  const { requestsAt, tokensAt } = rate
  return { ...rate, requestsAt: requestsAt + times * cost.requests, tokensAt: tokensAt + times * cost.tokens }
}

/** After a success. A call that was started before the provider rejected others proves nothing. */
function recovered(rate: Rate, failures: number): Rate {
  return rate.failures === failures ? { ...rate, failures: 0 } : rate
}

/** After an answer 429. Calls that were rejected together count as one failure. */
function blocked(
  rate: Rate,
  now: number,
  { asked, failures, maxBackoffMs }: { asked: number | undefined; failures: number; maxBackoffMs: number },
): Rate {
  const count = rate.failures === failures ? failures + 1 : rate.failures
  const backoff = Math.min(maxBackoffMs, FIRST_BACKOFF_MS * 2 ** (count - 1))
  const until = now + Math.min(asked ?? backoff, MAX_BLOCK_MS)
  return { ...rate, failures: count, blockedUntil: Math.max(rate.blockedUntil, until) }
}
