import type { Capability } from '../agent/capability.ts'
import { guard } from '../hooks/hook.ts'

/**
 * Lets a run end when the model asks for no more tools. On in every agent; without it a run goes on until a limit.
 * Only an answer the model finished by itself counts as completed.
 */
export function completion(): Capability {
  const done = guard(
    'afterStep',
    (ctx) => {
      const { step } = ctx
      if (step.type === 'error' || step.toolCalls.length > 0) return ctx
      if (step.finishReason === 'stop' && step.text !== '') return ctx.allowStop('The model asked for no more tools.')
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
