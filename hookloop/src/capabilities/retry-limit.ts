import type { Capability } from '../agent/capability.ts'
import type { Step } from '../state/execution.ts'
import { canonicalText } from '../state/json.ts'
import { AgentError } from '../errors.ts'
import { guard } from '../hooks/hook.ts'

/** Ends a run that keeps making the same call with the same arguments and keeps getting nothing out of it. */
export function retryLimit(options: { readonly maxRetries?: number } = {}): Capability {
  const { maxRetries = 3 } = options
  if (!Number.isInteger(maxRetries) || maxRetries < 0) {
    throw new AgentError('AGENT_INVALID_OPTION', 'retryLimit: "maxRetries" must be a whole number from 0 up.', {
      value: maxRetries,
    })
  }
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

/** The calls of a step without their ids, as a text that does not depend on the order of arguments. */
function callsOf(step: Step): string {
  return canonicalText(step.toolCalls.map(({ name, args }) => ({ name, args })))
}
