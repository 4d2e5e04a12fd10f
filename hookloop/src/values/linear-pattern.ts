import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/** The pattern engine. It is loaded on first use. */
export function loadRe2(): typeof import('re2js') {
  return require('re2js') as typeof import('re2js')
}

/**
 * A test for texts that runs a regular expression in linear time, by an engine without backtracking, so that no text from a
 * model can block the process. Throws an error that says why if the engine does not support the expression.
 */
export function linearTest(pattern: RegExp): (text: string) => boolean {
  const { RE2JS } = loadRe2()
  const foreign = foreignPart(pattern)
  if (foreign !== undefined) throw new Error(`${foreign} has another meaning in the pattern engine`)
  let flags = 0
  if (pattern.ignoreCase) flags |= RE2JS.CASE_INSENSITIVE
  if (pattern.multiline) flags |= RE2JS.MULTILINE
  if (pattern.dotAll) flags |= RE2JS.DOTALL
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern.source), flags)
  return (text) => compiled.matcher(text).find()
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
