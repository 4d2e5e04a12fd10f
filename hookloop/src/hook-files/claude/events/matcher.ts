import { createContext, Script } from 'node:vm'
import { messageOf } from '../../../errors.ts'
import { toNameTest } from '../../../hooks/patterns.ts'
import { eventSpec, type ClaudeEvent } from './claude-events.ts'

export type Matcher = {
  /** Whether a group is for this value. Throws if that cannot be told. */
  readonly matches: (value: string) => boolean
  /** What is wrong with it. It then matches nothing, and where a call is judged, nothing passes. */
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
    return { matches: limitedTest(pattern) }
  }
}

/** By the clock, and machines are busy: it is short for a person, and long for a name. */
const MATCH_MS = 500
const MAX_KNOWN = 1_000

/**
 * Looking ahead or behind needs an engine that goes back, and may do so for ever. So it has little time, and what it found is
 * remembered, also that it found nothing in time: names come again and again.
 */
function limitedTest(pattern: string): (value: string) => boolean {
  const known = new Map<string, boolean | Error>()
  return (value) => {
    const found = known.get(value) ?? tested(pattern, value)
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(value, found)
    if (found instanceof Error) throw found
    return found
  }
}

const test = new Script('new RegExp(pattern).test(value)')
let context: { pattern: string; value: string } | undefined

function tested(pattern: string, value: string): boolean | Error {
  if (value.length > MAX_VALUE) return new Error(`"${pattern}" is not tried on a name of ${value.length} characters`)
  context ??= createContext({ pattern: '', value: '' }) as { pattern: string; value: string }
  Object.assign(context, { pattern, value })
  try {
    return test.runInContext(context, { timeout: MATCH_MS }) === true
  } catch (error) {
    return new Error(`"${pattern}" could not be matched within ${MATCH_MS} ms`, { cause: error })
  }
}
