import { AgentError } from '../errors.ts'
import type { Mode } from './base-context.ts'
import { contextClasses, methodNames } from './context-methods.ts'
import { isAround, type HookTrigger } from './triggers.ts'

const called = /(\w+) is not a function/

/**
 * What a hook threw, with a message that helps if it called a method that its context does not have, or a method without
 * its context. The methods are not defined everywhere, so that `'block' in ctx` tells what a context can do.
 */
export function explainThrown(thrown: unknown, trigger: HookTrigger, mode: Mode): unknown {
  if (thrown instanceof TypeError && thrown.message.includes('#draft')) {
    const message =
      'It called a method of the context without the context. Write ctx.block(…), not { block } and block(…).'
    return new AgentError('HOOK_FAILED', message, { cause: thrown })
  }
  const name = thrown instanceof TypeError ? called.exec(thrown.message)?.[1] : undefined
  if (name === undefined || !methodNames.has(name)) return thrown
  const here = methodsAt(trigger, mode)
  if (here.includes(name)) return thrown
  const kind = mode === 'observe' ? 'an observer' : mode === 'guard' ? 'a guard' : 'a hook'
  const other = mode === 'transform' ? 'guard' : 'hook'
  const elsewhere = methodsAt(trigger, other === 'guard' ? 'guard' : 'transform').includes(name)
  const hint = elsewhere ? ` A ${other} can: use ${other}('${trigger}', …).` : ''
  return new AgentError(
    'HOOK_FAILED',
    `It called ctx.${name}(), which ${kind} does not have at ${trigger}.${hint} Available to it: ${here.join(', ') || 'no method'}.`,
    { value: name, cause: thrown },
  )
}

function methodsAt(trigger: HookTrigger, mode: Mode): readonly string[] {
  if (isAround(trigger) && mode !== 'transform') return []
  const { prototype } = contextClasses[trigger][mode]
  return [...methodNames].filter((name) => name in prototype && !(mode === 'observe' && name === 'spend'))
}
