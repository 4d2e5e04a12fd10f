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
      if (!hasFailed(ctx.step)) return ctx // the earlier steps are copied when they are read
      const latest = ctx.state.execution!.steps.slice(-maxRetries - 1)
      const wanted = callsOf(ctx.step)
      const same = latest.every((step) => hasFailed(step) && callsOf(step) === wanted)
      if (!same || latest.length <= maxRetries) return ctx
      const names = ctx.step.toolCalls.map((call) => call.name).join(', ')
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

/** Whether a step has calls, and none of them succeeded. */
function hasFailed({ toolCalls, toolExecutions }: Step): boolean {
  return toolCalls.length > 0 && toolExecutions.every(({ status }) => status !== 'ok')
}

/** The calls of a step without their ids, as text that does not depend on the order of arguments. */
function callsOf(step: Step): string {
  return canonicalText(step.toolCalls.map(({ name, args }) => ({ name, args })))
}
