import { AgentError, messageOf } from '../errors.ts'
import { loadRe2 } from '../state/packages.ts'

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
  const { RE2JS } = loadRe2()
  const foreign = foreignPart(pattern)
  if (foreign !== undefined) throw unusable(pattern, `${foreign} has another meaning in the pattern engine`)
  let flags = 0
  if (pattern.ignoreCase) flags |= RE2JS.CASE_INSENSITIVE
  if (pattern.multiline) flags |= RE2JS.MULTILINE
  if (pattern.dotAll) flags |= RE2JS.DOTALL
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern.source), flags)
    return (name) => compiled.matcher(name).find()
  } catch (error) {
    throw unusable(pattern, messageOf(error))
  }
}

/** The part of a pattern that the engine interprets differently from JavaScript, if there is one. */
function foreignPart({ source, sticky, unicode, unicodeSets }: RegExp): string | undefined {
  if (sticky) return 'the flag "y"'
  if (unicodeSets) return 'the flag "v"'
  const known = unicode ? /^[dDwWsSbBnrtfvxupP]$/ : /^[dDwWsSbBnrtfvxu]$/
  for (const [escape, letter, brace] of source.matchAll(/\\(?:([A-Za-z])(\{?)|.)/g)) {
    if (letter === undefined) continue
    if (!known.test(letter)) return `"${escape}"`
    if (letter === 'u' && brace !== '' && !unicode) return '"\\u{"'
  }
  return undefined
}

function unusable(pattern: RegExp, why: string): AgentError {
  return new AgentError(
    'HOOK_INVALID_PATTERN',
    `${String(pattern)} cannot be used as a tool pattern: ${why}. Patterns are matched in linear time, without lookaround and back references; test the name in "when" instead.`,
    { value: String(pattern) },
  )
}
