import { guard, type Capability } from '../plugin.ts'

/**
 * Ends a run when the model calls no more tools. Every agent has it by default; an agent that brings a capability of this
 * name has that one instead. A run is `completed` only if the finish reason is `stop` and the answer is not empty.
 */
export function completion(): Capability {
  const done = guard(
    'afterStep',
    (ctx) => {
      const { step } = ctx
      if (step.type === 'error' || step.toolCalls.length > 0) return ctx
      if (step.finishReason === 'stop' && step.text !== '') return ctx.allowStop('The model called no more tools.')
      const { finishReason } = step
      if (finishReason === 'withheld') {
        return ctx.allowStop('The answer was withheld.', { reason: 'finishReason', value: finishReason })
      }
      if (finishReason === 'stop')
        return ctx.allowStop('The model ended with an empty answer.', { reason: 'finishReason' })
      return ctx.allowStop(`The model ended with finish reason "${finishReason}".`, {
        reason: 'finishReason',
        value: finishReason,
      })
    },
    { name: 'completion', priority: -200 },
  )
  return { name: 'completion', hooks: [done] }
}
