import { createContext, Script } from 'node:vm'
import { messageOf } from '../../../errors.ts'
import { toNameTest } from '../../../core/hooks/patterns.ts'
import { once } from '../../../system/once.ts'
import { eventSpec, type ClaudeEvent } from './claude-events.ts'

export type Matcher = {
  /** Whether it matches a value. Throws if it times out. */
  readonly matches: (value: string) => boolean
  /** Why it is invalid. Then it matches nothing, and calls are denied. */
  readonly problem?: string
}

const everything: Matcher = { matches: () => true }
const MAX_VALUE = 256

/**
 * Compiles a matcher as Claude Code does: no matcher, an empty one and `*` match everything; names separated by `|` or
 * commas are compared; anything else is a regular expression that may match anywhere.
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
    return { matches: () => false, problem: `"${pattern}" is not a valid regular expression: ${messageOf(error)}` }
  }
  try {
    return { matches: toNameTest(compiled) } // in linear time if possible
  } catch {
    return { matches: limitedTest(pattern) }
  }
}

/** Wall time, so it is generous for a busy machine. */
const MATCH_MS = 500
const MAX_KNOWN = 1_000

/** Lookaround needs backtracking, which may not end. So it has a timeout, and results are cached, timeouts included. */
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

const testScript = once(() => new Script('new RegExp(pattern).test(value)'))
let context: { pattern: string; value: string } | undefined

function tested(pattern: string, value: string): boolean | Error {
  if (value.length > MAX_VALUE)
    return new Error(`"${pattern}" cannot be matched with a name of ${value.length} characters`)
  context ??= createContext({ pattern: '', value: '' }) as { pattern: string; value: string }
  Object.assign(context, { pattern, value })
  try {
    return testScript().runInContext(context, { timeout: MATCH_MS }) === true
  } catch (error) {
    return new Error(`"${pattern}" timed out after ${MATCH_MS} ms`, { cause: error })
  }
}
