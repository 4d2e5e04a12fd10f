import { guard, type Capability } from '../plugin.ts'
import { checkArgument, checkOptions, invalidOption } from '../values/check-options.ts'
import { describeValue, isPlainObject } from '../values/describe-value.ts'

/** What an answer means for the run: no opinion, it may stop, or it must continue with this message to the model. */
export type ContentVerdict = undefined | 'stop' | { readonly continue: string }

/**
 * Votes on a final answer by its text: the run may stop, or continues with a message to the model.
 *
 * @param read Returns `'stop'`, `{ continue: message }`, or undefined for no opinion, or a promise of one. Anything else fails.
 * @param options `name`: the name of the hook. Default `'responseContent'`.
 *
 * @example
 * responseContent((text) => (text.includes('SOURCES') ? 'stop' : { continue: 'Add your sources.' }))
 */
export function responseContent(
  read: (text: string) => ContentVerdict | Promise<ContentVerdict>,
  options: { readonly name?: string } = {},
): Capability {
  checkOptions('responseContent', options, ['name'])
  checkArgument('responseContent', ['read', read], typeof read === 'function', 'a function of the text')
  const name = options.name ?? 'responseContent'
  const check = guard(
    'afterStep',
    async (ctx) => {
      if (ctx.step.type !== 'finalResponse') return ctx
      const verdict: unknown = await read(ctx.step.text)
      if (verdict === undefined) return ctx
      if (verdict === 'stop') return ctx.allowStop('The content of the answer allows it.')
      if (isContinuation(verdict)) return ctx.requestContinuation(verdict.continue)
      const why = `the function must return undefined, 'stop' or { continue: message }, not ${describeValue(verdict)}`
      throw invalidOption(name, why, verdict)
    },
    { name },
  )
  return { name, hooks: [check] }
}

function isContinuation(verdict: unknown): verdict is { readonly continue: string } {
  return isPlainObject(verdict) && Object.keys(verdict).join() === 'continue' && typeof verdict['continue'] === 'string'
}
