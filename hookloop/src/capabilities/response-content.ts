import type { Capability } from '../agent/capability.ts'
import { checkArgument, checkOptions } from '../state/check-options.ts'
import { guard } from '../hooks/hook.ts'

/** What an answer means for the run: no opinion, it may stop, or it must continue with this message to the model. */
export type ContentVerdict = undefined | 'stop' | { readonly continue: string }

/**
 * Votes on a final answer by its text: the run may stop, or continues with a message to the model.
 *
 * @param read Returns `'stop'`, `{ continue: message }`, or undefined for no opinion.
 * @param options `name`: the name of the hook. Default `'responseContent'`.
 *
 * @example
 * responseContent((text) => (text.includes('SOURCES') ? 'stop' : { continue: 'Add your sources.' }))
 */
export function responseContent(
  read: (text: string) => ContentVerdict,
  options: { readonly name?: string } = {},
): Capability {
  checkOptions('responseContent', options, ['name'])
  checkArgument('responseContent', ['read', read], typeof read === 'function', 'a function of the text')
  const name = options.name ?? 'responseContent'
  const check = guard(
    'afterStep',
    (ctx) => {
      if (ctx.step.type !== 'finalResponse') return ctx
      const verdict = read(ctx.step.text)
      if (verdict === undefined) return ctx
      return verdict === 'stop'
        ? ctx.allowStop('The content of the answer allows it.')
        : ctx.requestContinuation(verdict.continue)
    },
    { name },
  )
  return { name, hooks: [check] }
}
