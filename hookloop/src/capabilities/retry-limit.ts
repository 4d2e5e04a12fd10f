import { guard, type Capability, type Step } from '../plugin.ts'
import { readOptions } from '../values/check-options.ts'
import { canonicalText } from '../values/json.ts'

/**
 * Stops a run that repeats the same failing tool calls with the same arguments.
 *
 * @param options `maxRetries`: how often failing calls may be repeated. Default 3.
 *
 * @example
 * createAgent({ model, use: [retryLimit({ maxRetries: 2 })] })
 */
export function retryLimit(options: { readonly maxRetries?: number } = {}): Capability {
  const { maxRetries } = readOptions('retryLimit', options, { maxRetries: 3 })
  const check = guard(
    'afterStep',
    (ctx) => {
      const { steps } = ctx.state.execution!
      const latest = steps.slice(-maxRetries - 1)
      const [first] = latest
      if (latest.length <= maxRetries || first === undefined || first.toolCalls.length === 0) return ctx
      const wanted = callsOf(first)
      const same = latest.every(
        (step) => step.toolExecutions.every((execution) => execution.status !== 'ok') && callsOf(step) === wanted,
      )
      if (!same) return ctx
      const names = first.toolCalls.map((call) => call.name).join(', ')
      return ctx.stop(
        `The same failing call (${names}) was retried ${maxRetries} ${maxRetries === 1 ? 'time' : 'times'}.`,
        {
          reason: 'retryLimit',
          value: { value: latest.length - 1, limit: maxRetries },
        },
      )
    },
    { name: 'retryLimit', priority: 200 },
  )
  return { name: 'retryLimit', hooks: [check] }
}

/** The calls of a step without their ids, as text that does not depend on the order of arguments. */
function callsOf(step: Step): string {
  return canonicalText(step.toolCalls.map(({ name, args }) => ({ name, args })))
}
