import { invalidOption } from '../../values/check-options.ts'
import { messageOf } from '../../errors.ts'
import { toPathTest } from './glob.ts'
import { foldName } from './paths.ts'

/** Returns the first pattern that matches a path or one of its folders. A path is a list of names below a root. */
export type PathRules = (names: readonly string[]) => string | undefined

/**
 * A pattern without a slash matches a name anywhere (`.git`, `*.pem`), one with a slash is a path from the root
 * (`docs/private`, `**` for any folders). Everything below a match matches too.
 */
export function pathRules(option: string, patterns: readonly string[]): PathRules {
  const rules = patterns.map((pattern) => toRule(option, pattern))
  if (rules.length === 0) return () => undefined
  return (names) => {
    const folded = names.map(foldName)
    return rules.find((rule) => rule.matches(folded))?.pattern
  }
}

type Rule = { readonly pattern: string; readonly matches: (folded: readonly string[]) => boolean }

function toRule(option: string, pattern: unknown): Rule {
  if (typeof pattern !== 'string' || /^\/*$|\0/.test(pattern) || pattern.split('/').includes('..')) {
    throw invalidOption(
      'files',
      `${JSON.stringify(pattern)} in "${option}" is not a pattern for paths below the root`,
      pattern,
    )
  }
  const trimmed = pattern.replace(/^(?:\.?\/)+/, '').replace(/(?:\/(?:\*\*)?)+$/, '')
  try {
    const test = toPathTest(trimmed.split('/').map(foldPattern).join('/'))
    if (!pattern.replace(/\/(?:\*\*)?$/, '').includes('/')) return { pattern, matches: (names) => names.some(test) }
    return { pattern, matches: (names) => names.some((_name, at) => test(names.slice(0, at + 1).join('/'))) }
  } catch (error) {
    throw invalidOption('files', `"${pattern}" in "${option}" is not valid: ${messageOf(error)}`, pattern)
  }
}

/** Folds a pattern like a name, but keeps dots at its end, as in `.env.*`. */
function foldPattern(pattern: string): string {
  return foldName(`${pattern}|`).slice(0, -1)
}
