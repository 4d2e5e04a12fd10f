import { choiceOf, optionTypes } from '../values/option-types.ts'
import { guard, hook, type Capability } from '../plugin.ts'
import { checkChoice, checkOptions, definedOptions } from '../values/check-options.ts'

/** Options of `errorPolicy`. The defaults are those of the preset `patient`. */
export type ErrorPolicy = {
  /** What to do when a model call or a hook throws: `stop` ends the run as `stopped`. Default `retry`. */
  readonly onError: 'stop' | 'retry' | 'ignore'
  /**
   * How often the agent may try again after consecutive failures: errors, and steps whose calls all failed or were
   * blocked. The next failure stops the run. Default 3.
   */
  readonly maxRetries: number
  /** The wait before the first retry. It doubles with each further one. Default 250. */
  readonly backoffMs: number
  /** The longest wait before a retry. Default 10,000. */
  readonly maxBackoffMs: number
}

/** Presets of `errorPolicy`: stop at the first failure, retry a few times, or ignore failures until a limit stops the run. */
export const errorPolicies = {
  strict: { onError: 'stop', maxRetries: 0, backoffMs: 0, maxBackoffMs: 0 },
  patient: { onError: 'retry', maxRetries: 3, backoffMs: 250, maxBackoffMs: 10_000 },
  tolerant: { onError: 'ignore', maxRetries: Infinity, backoffMs: 0, maxBackoffMs: 0 },
} as const satisfies Record<string, ErrorPolicy>

/**
 * Decides what happens after failures. A failed tool call is reported to the model and counted, not retried; an error of a
 * model call or a hook is retried with growing waits, ignored, or stops the run. Without a policy an error fails the run.
 *
 * @example
 * createAgent({ model, use: [errorPolicy('strict')] })
 * createAgent({ model, use: [errorPolicy({ maxRetries: 1, backoffMs: 1_000 })] })
 */
export function errorPolicy(chosen: keyof typeof errorPolicies | Partial<ErrorPolicy> = 'patient'): Capability {
  const policy = typeof chosen === 'string' ? presetOf(chosen) : withDefaults(chosen)
  const { onError, maxRetries, backoffMs, maxBackoffMs } = policy
  const limitReached = (
    failures: number,
  ): [string, { reason: 'errorForbade'; value: { value: number; limit: number } }] => [
    `${failures} ${failures === 1 ? 'failure' : 'failures in a row'}.`,
    { reason: 'errorForbade', value: { value: failures - 1, limit: maxRetries } },
  ]
  const thrown = hook(
    'onError',
    (ctx) => {
      const failures = ctx.consecutiveFailures
      if (onError === 'stop' || failures > maxRetries) {
        const [message, details] = limitReached(failures)
        return ctx.stop(`${message} The last one: ${ctx.error.message}`, details)
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
      return failures > maxRetries && ctx.step.errors.length === 0 ? ctx.stop(...limitReached(failures)) : ctx
    },
    { name: 'errorPolicy.afterStep', priority: 200 },
  )
  return {
    name: 'errorPolicy',
    hooks: [thrown, failed],
    notes: [
      `Errors: ${onError}, ${maxRetries === Infinity ? 'any number of' : `at most ${maxRetries}`} retries in a row.`,
    ],
  }
}

function presetOf(name: keyof typeof errorPolicies): ErrorPolicy {
  checkChoice('errorPolicy', 'preset', name, Object.keys(errorPolicies))
  return errorPolicies[name]
}

function withDefaults(options: Partial<ErrorPolicy>): ErrorPolicy {
  checkOptions('errorPolicy', options, types)
  return { ...errorPolicies.patient, ...definedOptions(options) }
}

const types = {
  onError: choiceOf('stop', 'retry', 'ignore'),
  maxRetries: optionTypes.amount,
  backoffMs: optionTypes.amount,
  maxBackoffMs: optionTypes.amount,
}
