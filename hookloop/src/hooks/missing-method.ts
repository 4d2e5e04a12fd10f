import { AgentError } from '../errors.ts'
import { nearestName } from '../state/nearest-name.ts'
import type { Mode } from './base-context.ts'
import { contextClasses, methodNames } from './context-methods.ts'
import type { Hook } from './hook.ts'
import { isAround, type HookTrigger } from './triggers.ts'

/** The part of a hook that explains what its code did. */
type Thrower = Pick<Hook, 'mode' | 'handle'>

/**
 * What a hook threw, with a message that helps if it called a method or read a field that its context does not have,
 * changed a value of its context, or called a method without its context. The methods are not defined everywhere, so that
 * `'block' in ctx` tells what a context can do.
 */
export function explainThrown(thrown: unknown, trigger: HookTrigger, hook: Thrower): unknown {
  if (!(thrown instanceof TypeError)) return thrown
  const message = explained(thrown.message, trigger, hook)
  return message === undefined ? thrown : new AgentError('HOOK_FAILED', message, { cause: thrown })
}

/** What V8 and JavaScriptCore say about a write to a frozen value. */
const written =
  /object is not extensible|read.?only property|which has only a getter|^Cannot (delete|redefine) property/
const undefinedRead = /^Cannot read properties of (undefined|null)|^(undefined|null) is not an object/
const notAFunction = /^((?:[\w$]+\.)*)([\w$]+) is not a function/

function explained(message: string, trigger: HookTrigger, hook: Thrower): string | undefined {
  if (message.includes('#draft')) {
    return 'It called a method of the context without the context. Write ctx.block(…), not { block } and block(…).'
  }
  if (written.test(message)) return `${message}. ${immutable(trigger, hook.mode)}`
  if (undefinedRead.test(message)) return missingField(message, trigger, hook)
  const [, of = '', name] = notAFunction.exec(message) ?? []
  if (name === undefined) return undefined
  const { parameter } = sourceOf(hook)
  if (of !== `${parameter}.` && of.startsWith(`${parameter}.`)) {
    return arrayMethods.has(name) ? `${message}. ${immutable(trigger, hook.mode)}` : undefined
  }
  return of === `${parameter}.` || methodNames.has(name) ? missingMethod(name, trigger, hook.mode) : undefined
}

const arrayMethods: ReadonlySet<string> = new Set(['push', 'unshift', 'splice', 'pop', 'shift', 'sort', 'reverse'])

function immutable(trigger: HookTrigger, mode: Mode): string {
  const changes = methodsAt(trigger, mode).filter((name) => /^with[A-Z]/.test(name))
  const how = changes.map((name) => `ctx.${name}(…)`).join(' or ')
  return `Contexts and their values are immutable: ${how === '' ? `${kindOf(mode)} changes nothing here` : `return ${how}`}.`
}

/** Names that people know from elsewhere, and what a context has instead: the first that it has. */
const known: { readonly [name: string]: readonly string[] } = {
  deny: ['block', 'stop'],
  reject: ['block', 'stop'],
  approve: ['allow'],
  abort: ['stop'],
  cancel: ['stop'],
  setArgs: ['withArgs'],
  updateArgs: ['withArgs'],
  setState: ['withState'],
  addMessage: ['withState'],
}

function missingMethod(name: string, trigger: HookTrigger, mode: Mode): string | undefined {
  const here = methodsAt(trigger, mode)
  if (here.includes(name)) return undefined
  const called = `It called ctx.${name}(), which ${kindOf(mode)} does not have at ${trigger}.`
  if (name === 'next' && isAround(trigger)) return `${called} next is the second parameter: (ctx, next) => next().`
  const meant = Object.hasOwn(known, name) ? known[name]! : [name]
  const own = meant.find((each) => here.includes(each)) ?? nearestName(name, here)
  const other = (['guard', 'transform'] as const).find((each) => methodsAt(trigger, each).includes(meant[0]!))
  const kind = other === 'guard' ? 'guard' : 'hook'
  const hint =
    own !== undefined
      ? ` It is called "${own}" here.`
      : other === undefined
        ? ''
        : ` A ${kind} can${meant[0] === name ? '' : ` call ctx.${meant[0]}()`}: use ${kind}('${trigger}', …).`
  return `${called}${hint} Available to it: ${here.join(', ') || 'no method'}.`
}

function methodsAt(trigger: HookTrigger, mode: Mode): readonly string[] {
  const names = namesAt(trigger, mode)
  return [...methodNames].filter((name) => names.includes(name))
}

/** The message about a value that is undefined, if the hook reads a field that its context or its tool call does not have. */
function missingField(message: string, trigger: HookTrigger, hook: Thrower): string | undefined {
  const fields = namesAt(trigger, hook.mode)
  const { text, read } = sourceOf(hook)
  const missing = read.find((name) => !fields.includes(name))
  const [, ofCall] = /\btoolCall\??\.(input|arguments|parameters|params)\b/.exec(text) ?? []
  const has = fields.includes('toolCall')
  if (ofCall !== undefined && has)
    return `${message}. ctx.toolCall has no "${ofCall}": the arguments are ctx.toolCall.args.`
  if (missing === undefined) return undefined
  const args = has && /^(args|input|arguments|parameters|params|toolInput)$/.test(missing)
  const hint = args
    ? 'the arguments are ctx.toolCall.args'
    : `it has ${fields.filter((name) => !methodNames.has(name)).join(', ')}`
  return `${message}. ctx has no "${missing}" at ${trigger}: ${hint}.`
}

/** The source of the handler, the name of its first parameter, and the fields that it reads from it. */
function sourceOf({ handle }: Thrower): { text: string; parameter: string | undefined; read: readonly string[] } {
  const text = Function.prototype.toString.call(handle)
  const [, parameter] =
    /^(?:async\s+)?([\w$]+)\s*=>/.exec(text) ?? /^(?:async\s+)?(?:function\s*)?[\w$]*\s*\(\s*([\w$]+)/.exec(text) ?? []
  if (parameter !== undefined) {
    const reads = text.matchAll(new RegExp(`(?<![\\w$.])${parameter.replaceAll('$', '\\$')}\\.([\\w$]+)`, 'g'))
    return { text, parameter, read: [...reads].map(([, name]) => name!) }
  }
  const [, names = ''] = /^[^=]*?\(\s*\{([^{}]*)\}/.exec(text) ?? []
  return { text, parameter, read: names.split(',').flatMap((each) => /[\w$]+/.exec(each)?.[0] ?? []) }
}

function kindOf(mode: Mode): string {
  return mode === 'observe' ? 'an observer' : mode === 'guard' ? 'a guard' : 'a hook'
}

/** The fields and methods of a context. */
function namesAt(trigger: HookTrigger, mode: Mode): readonly string[] {
  if (isAround(trigger) && mode !== 'transform') return []
  const { prototype } = contextClasses[trigger][mode]
  const names = [prototype, Object.getPrototypeOf(prototype) as object].flatMap((of) => Object.getOwnPropertyNames(of))
  const used = [...new Set(names)].filter((name) => name !== 'constructor')
  return used.filter((name) => !(mode === 'observe' && name === 'spend'))
}
