import { createRequire } from 'node:module'
import { AgentError, messageOf } from '../errors.ts'

export type NamePattern = string | RegExp

/**
 * A test for names that takes linear time on any name: a text is compared, `*` in it stands for any characters, and a
 * RegExp is run by an engine without backtracking, so that no name a model invents can hang the loop.
 */
export function toNameTest(pattern: NamePattern): (name: string) => boolean {
  if (pattern instanceof RegExp) return toRegExpTest(pattern)
  if (!pattern.includes('*')) return (name) => name === pattern
  return (name) => matchesWildcard(name, pattern)
}

/** Greedy two-pointer matching: on a mismatch, only the last star is tried again, so the cost is bounded by n × m. */
function matchesWildcard(name: string, pattern: string): boolean {
  let [n, p, star, mark] = [0, 0, -1, 0]
  while (n < name.length) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p++
      mark = n
    } else if (p < pattern.length && pattern[p] === name[n]) {
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
  // Loaded on first use: most agents have no RegExp, and none should pay for the engine when it starts.
  const { RE2JS } = createRequire(import.meta.url)('re2js') as typeof import('re2js')
  let flags = 0
  if (pattern.ignoreCase) flags |= RE2JS.CASE_INSENSITIVE
  if (pattern.multiline) flags |= RE2JS.MULTILINE
  if (pattern.dotAll) flags |= RE2JS.DOTALL
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern.source), flags)
    return (name) => compiled.matcher(name).find()
  } catch (error) {
    throw new AgentError(
      'HOOK_INVALID_PATTERN',
      `${String(pattern)} cannot be matched in linear time (${messageOf(error)}). Write it without lookaround and back references, or test the name in "when".`,
      { value: String(pattern), cause: error },
    )
  }
}
