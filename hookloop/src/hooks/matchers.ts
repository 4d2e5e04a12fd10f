import { checkArgument, checkChoice, invalidOption } from '../values/check-options.ts'
import type { AgentState } from '../state/agent-state.ts'
import { stepTypes, type StepType } from '../state/execution.ts'
import { exactJson, sameJson, type Json } from '../values/json.ts'
import { toNameTest, type NamePattern } from './patterns.ts'

/** As much of a context as a matcher looks at. */
export type Matchable = {
  readonly trigger: string
  readonly state: AgentState
  readonly toolCall?: { readonly name: string }
  readonly step?: { readonly type: StepType }
}

/** A predicate for the option `when` of a hook. */
export type Matcher = (ctx: Matchable) => boolean

/**
 * Matches tool calls by the name of the tool, a wildcard or a RegExp.
 *
 * @example
 * guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { when: all(toolName('delete_*'), not(hasMetadata('role', 'admin'))) })
 */
export function toolName(pattern: NamePattern, ...more: []): Matcher {
  checkSingle('toolName', more)
  const isPattern = typeof pattern === 'string' || pattern instanceof RegExp
  checkArgument('toolName', ['pattern', pattern], isPattern, 'a name, a wildcard or a RegExp')
  const test = toNameTest(pattern)
  return (ctx) => ctx.toolCall !== undefined && test(ctx.toolCall.name)
}

/** Matches if the current step, or the last closed one, has this type. */
export function stepType(type: StepType, ...more: []): Matcher {
  checkSingle('stepType', more)
  checkChoice('stepType', 'type', type, stepTypes)
  return (ctx) => (ctx.step ?? ctx.state.lastStep)?.type === type
}

/** Matches if the metadata of the state has this key and, if given, this value. */
export function hasMetadata(key: string, value?: Json): Matcher {
  checkArgument('hasMetadata', ['key', key], typeof key === 'string', 'a string')
  const wanted = value === undefined ? undefined : exactJson(value, 'metadata value')
  return (ctx) => {
    if (!Object.hasOwn(ctx.state.metadata, key)) return false
    return wanted === undefined || sameJson(ctx.state.metadata[key]!, wanted)
  }
}

/** Matches if all matchers match. */
export function all(...matchers: readonly Matcher[]): Matcher {
  for (const each of matchers) checkMatcher('all', each)
  return (ctx) => matchers.every((matches) => matches(ctx))
}

/** Matches if at least one matcher matches. */
export function any(...matchers: readonly Matcher[]): Matcher {
  for (const each of matchers) checkMatcher('any', each)
  return (ctx) => matchers.some((matches) => matches(ctx))
}

/** Matches if the matcher does not. */
export function not(matcher: Matcher, ...more: []): Matcher {
  checkSingle('not', more)
  checkMatcher('not', matcher)
  return (ctx) => !matcher(ctx)
}

/** Throws for a second value, which would silently not be matched. A number is the index that `map` passes. */
function checkSingle(where: string, more: readonly unknown[]): void {
  if (more.length === 0 || typeof more[0] === 'number') return
  throw invalidOption(where, 'it takes one value; combine several with all() or any()', more[0])
}

function checkMatcher(where: string, matcher: unknown): void {
  checkArgument(where, ['matcher', matcher], typeof matcher === 'function', 'a matcher: a function of the context')
}
