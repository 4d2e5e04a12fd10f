import type { AgentState } from '../state/agent-state.ts'
import type { StepType } from '../state/execution.ts'
import { exactJson, sameJson, type Json } from '../state/json.ts'
import { toNameTest, type NamePattern } from './patterns.ts'

/** As much of a context as a matcher looks at. */
export type Matchable = {
  readonly trigger: string
  readonly state: AgentState
  readonly toolCall?: { readonly name: string }
  readonly step?: { readonly type: StepType }
}

/** A predicate for the `when` option. Any function of the context is one; these are the common ones. */
export type Matcher = (ctx: Matchable) => boolean

/** At the tool triggers: the called tool has this name, or one that fits the wildcard or RegExp. */
export function toolName(pattern: NamePattern): Matcher {
  const test = toNameTest(pattern)
  return (ctx) => ctx.toolCall !== undefined && test(ctx.toolCall.name)
}

/** The step at hand, or the last closed one, is of this type. */
export function stepType(type: StepType): Matcher {
  return (ctx) => (ctx.step ?? ctx.state.lastStep)?.type === type
}

/** The metadata has this key, and this value if one is given. */
export function hasMetadata(key: string, value?: Json): Matcher {
  const wanted = value === undefined ? undefined : exactJson(value, 'metadata value')
  return (ctx) => {
    if (!Object.hasOwn(ctx.state.metadata, key)) return false
    return wanted === undefined || sameJson(ctx.state.metadata[key]!, wanted)
  }
}

export function all(...matchers: readonly Matcher[]): Matcher {
  return (ctx) => matchers.every((matches) => matches(ctx))
}

export function any(...matchers: readonly Matcher[]): Matcher {
  return (ctx) => matchers.some((matches) => matches(ctx))
}

export function not(matcher: Matcher): Matcher {
  return (ctx) => !matcher(ctx)
}
