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
      const what = step.finishReason === 'stop' ? 'an empty answer' : `finish reason "${step.finishReason}"`
      return ctx.allowStop(`The model ended with ${what}.`, { reason: 'finishReason', value: step.finishReason })
    },
    { name: 'completion', priority: -200 },
  )
  return { name: 'completion', hooks: [done] }
}
