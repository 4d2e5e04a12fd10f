import type { AgentState } from '../state/agent-state.ts'
import type { StepType } from '../state/execution.ts'
import { exactJson, sameJson, type Json } from '../../values/json.ts'
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
export function toolName(pattern: NamePattern): Matcher {
  const test = toNameTest(pattern)
  return (ctx) => ctx.toolCall !== undefined && test(ctx.toolCall.name)
}

/** Matches if the current step, or the last closed one, has this type. */
export function stepType(type: StepType): Matcher {
  return (ctx) => (ctx.step ?? ctx.state.lastStep)?.type === type
}

/** Matches if the metadata of the state has this key and, if given, this value. */
export function hasMetadata(key: string, value?: Json): Matcher {
  const wanted = value === undefined ? undefined : exactJson(value, 'metadata value')
  return (ctx) => {
    if (!Object.hasOwn(ctx.state.metadata, key)) return false
    return wanted === undefined || sameJson(ctx.state.metadata[key]!, wanted)
  }
}

/** Matches if all matchers match. */
export function all(...matchers: readonly Matcher[]): Matcher {
  return (ctx) => matchers.every((matches) => matches(ctx))
}

/** Matches if at least one matcher matches. */
export function any(...matchers: readonly Matcher[]): Matcher {
  return (ctx) => matchers.some((matches) => matches(ctx))
}

/** Matches if the matcher does not. */
export function not(matcher: Matcher): Matcher {
  return (ctx) => !matcher(ctx)
}
