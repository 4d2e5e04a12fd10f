import type { Capability } from '../agent/capability.ts'
import { AgentError } from '../errors.ts'
import { guard, hook } from '../hooks/hook.ts'

export type ErrorPolicy = {
  /** What to do when something throws: the model, or a hook. `stop` ends the run as stopped, not as failed. */
  readonly onError: 'stop' | 'retry' | 'ignore'
  /** Failures in a row after which the run is stopped: errors, and steps whose calls all failed or were blocked. */
  readonly maxFailures: number
  /** The first wait before a retry; each further one doubles. */
  readonly backoffMs: number
  readonly maxBackoffMs: number
}

/** Three ways to be: end at the first failure, try a few times, or leave it to the limits. */
export const errorPolicies = {
  strict: { onError: 'stop', maxFailures: 1, backoffMs: 0, maxBackoffMs: 0 },
  patient: { onError: 'retry', maxFailures: 4, backoffMs: 250, maxBackoffMs: 10_000 },
  tolerant: { onError: 'ignore', maxFailures: Infinity, backoffMs: 0, maxBackoffMs: 0 },
} as const satisfies Record<string, ErrorPolicy>

/**
 * Turns failures in a row into a stop, a retry or nothing. A failed call is the model's to mend, so it is counted, not
 * retried; what nobody can mend is retried with growing pauses. Without a policy an error fails the run.
 */
export function errorPolicy(chosen: keyof typeof errorPolicies | Partial<ErrorPolicy> = 'patient'): Capability {
  const policy = check(typeof chosen === 'string' ? errorPolicies[chosen] : { ...errorPolicies.patient, ...chosen })
  const { onError, maxFailures, backoffMs, maxBackoffMs } = policy
  const giveUp = (failures: number): [string, { reason: 'errorForbade'; value: { value: number; limit: number } }] => [
    `${failures} ${failures === 1 ? 'failure' : 'failures in a row'}.`,
    { reason: 'errorForbade', value: { value: failures, limit: maxFailures } },
  ]
  const thrown = hook(
    'onError',
    (ctx) => {
      const failures = ctx.consecutiveFailures
      if (onError === 'stop' || failures >= maxFailures) {
        const [words, details] = giveUp(failures)
        return ctx.stop(`${words} The last: ${ctx.error.message}`, details)
      }
      if (onError === 'ignore') return ctx.ignore()
      return ctx.retry({ afterMs: Math.min(maxBackoffMs, backoffMs * 2 ** (failures - 1)) })
    },
    { name: 'errorPolicy.onError', priority: 100 },
  )
  const failed = guard(
    'afterStep',
    (ctx) => {
      const failures = ctx.state.execution?.failures ?? 0
      return failures >= maxFailures && ctx.step.errors.length === 0 ? ctx.stop(...giveUp(failures)) : ctx
    },
    { name: 'errorPolicy.afterStep', priority: 200 },
  )
  return {
    name: 'errorPolicy',
    hooks: [thrown, failed],
    notes: [`Errors: ${onError}, ${maxFailures === Infinity ? 'any number' : `at most ${maxFailures}`} in a row.`],
  }
}

function check(policy: ErrorPolicy | undefined): ErrorPolicy {
  const known = Object.keys(errorPolicies).join(', ')
  if (policy === undefined) throw invalid(`there is no such preset; use ${known} or an object`, policy)
  if (!['stop', 'retry', 'ignore'].includes(policy.onError))
    throw invalid('"onError" is stop, retry or ignore', policy.onError)
  if (!(policy.maxFailures >= 1)) throw invalid('"maxFailures" must be 1 or more', policy.maxFailures)
  if (!(policy.backoffMs >= 0 && policy.maxBackoffMs >= 0)) throw invalid('waits cannot be negative', policy)
  return policy
}

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `errorPolicy: ${why}.`, { value })
}
