import { AgentError, messageOf } from '../../errors.ts'
import { linearTest } from '../../values/linear-pattern.ts'

/** A name, in which `*` matches any characters, or a RegExp. */
export type NamePattern = string | RegExp

/**
 * A test for names that takes linear time: a string is compared, `*` in it matches any characters, and a RegExp is run by
 * an engine without backtracking, so that no name from a model can block the loop.
 */
export function toNameTest(pattern: NamePattern): (name: string) => boolean {
  if (pattern instanceof RegExp) return toRegExpTest(pattern)
  if (!pattern.includes('*')) return (name) => name === pattern
  return (name) => matchesWildcard(name, pattern)
}

/**
 * Greedy matching with two pointers: a mismatch only retries the last star, so the cost is at most n × m. With `one`, that
 * character matches any single one.
 */
export function matchesWildcard(name: string, pattern: string, one?: string): boolean {
  let [n, p, star, mark] = [0, 0, -1, 0]
  while (n < name.length) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p++
      mark = n
    } else if (p < pattern.length && (pattern[p] === name[n] || pattern[p] === one)) {
      n++
      p++
    } else if (star >= 0) {
      p = star + 1
      n = ++mark
    } else {
      return false
    }
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}

function toRegExpTest(pattern: RegExp): (name: string) => boolean {
  try {
    return linearTest(pattern)
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw unusable(pattern, messageOf(error))
  }
}

function unusable(pattern: RegExp, why: string): AgentError {
  return new AgentError(
    'HOOK_INVALID_PATTERN',
    `${String(pattern)} cannot be used as a tool pattern: ${why}. Patterns are matched in linear time, without lookaround and back references; test the name in "when" instead.`,
    { value: String(pattern) },
  )
}
