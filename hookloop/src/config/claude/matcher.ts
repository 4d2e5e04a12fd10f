import { messageOf } from '../../errors.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { eventSpec, type ClaudeEvent } from './events.ts'

export type Matcher = {
  /** Whether a group is for this value. */
  readonly matches: (value: string) => boolean
  /** What is wrong with it. It then matches nothing, or, where a call is judged, everything: see `problem`. */
  readonly problem?: string
}

const everything: Matcher = { matches: () => true }
const MAX_VALUE = 256

/**
 * A matcher as its specification reads it: nothing, an empty text and `*` match all; words are compared, several of them
 * divided by `|` or commas; anything else is a regular expression that may match anywhere.
 */
export function toMatcher(pattern: string | undefined, event: ClaudeEvent): Matcher {
  const { matches, isNarrow } = eventSpec(event)
  if (matches === undefined || pattern === undefined || pattern === '' || pattern === '*') return everything
  const isExact = isNarrow === true ? /^[A-Za-z0-9_|]+$/ : /^[A-Za-z0-9_\- ,|]+$/
  if (isExact.test(pattern)) {
    const names = new Set(pattern.split(isNarrow === true ? '|' : /[|,]/).map((name) => name.trim()))
    return { matches: (value) => names.has(value) }
  }
  return expression(pattern)
}

function expression(pattern: string): Matcher {
  let compiled: RegExp
  try {
    compiled = new RegExp(pattern)
  } catch (error) {
    return { matches: () => false, problem: `"${pattern}" is no regular expression: ${messageOf(error)}` }
  }
  try {
    return { matches: toNameTest(compiled) } // in linear time, where it can be
  } catch {
    // Looking ahead or behind needs an engine that goes back. Names are short, and it is given nothing else.
    return { matches: (value) => value.length <= MAX_VALUE && compiled.test(value) }
  }
}
