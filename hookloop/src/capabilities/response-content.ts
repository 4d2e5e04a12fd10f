import type { Capability } from '../agent/capability.ts'
import { guard } from '../hooks/hook.ts'

/** What the content of an answer says about going on: nothing, that the run may end, or what is still missing. */
export type ContentVerdict = undefined | 'stop' | { readonly continue: string }

/** Reads what the model wrote in a step without calls and votes on it: `allowStop`, or another step with a reason. */
export function responseContent(
  read: (text: string) => ContentVerdict,
  options: { readonly name?: string } = {},
): Capability {
  const name = options.name ?? 'responseContent'
  const check = guard(
    'afterStep',
    (ctx) => {
      if (ctx.step.type !== 'finalResponse') return ctx
      const verdict = read(ctx.step.text)
      if (verdict === undefined) return ctx
      return verdict === 'stop' ? ctx.allowStop('The answer says so.') : ctx.requestContinuation(verdict.continue)
    },
    { name },
  )
  return { name, hooks: [check] }
}
