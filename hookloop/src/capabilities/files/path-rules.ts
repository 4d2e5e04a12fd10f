import { invalidOption } from '../../agent/check-options.ts'
import { messageOf } from '../../errors.ts'
import { toPathTest } from './glob.ts'
import { foldName } from './names.ts'

/** Gives the first pattern that a path fits, itself or by a folder it lies in. A path is a list of names below a root. */
export type PathRules = (names: readonly string[]) => string | undefined

/**
 * Patterns as rules. One without a slash fits a name anywhere (`.git`, `*.pem`), one with a slash is a path from the
 * root (`docs/private`, `**` for anywhere). Either way what lies below fits as well.
 */
export function pathRules(option: string, patterns: readonly string[]): PathRules {
  if (!Array.isArray(patterns)) throw invalidOption('files', `"${option}" must be a list of patterns`, patterns)
  const rules = patterns.map((pattern) => toRule(option, pattern))
  if (rules.length === 0) return () => undefined
  return (names) => {
    const folded = names.map(foldName)
    return rules.find((rule) => rule.fits(folded))?.pattern
  }
}

type Rule = { readonly pattern: string; readonly fits: (folded: readonly string[]) => boolean }

function toRule(option: string, pattern: unknown): Rule {
  if (typeof pattern !== 'string' || /^\/*$|\0/.test(pattern) || pattern.split('/').includes('..')) {
    throw invalidOption(
      'files',
      `${JSON.stringify(pattern)} in "${option}" is no pattern of a path below the root`,
      pattern,
    )
  }
  const trimmed = pattern.replace(/^(?:\.?\/)+/, '').replace(/(?:\/(?:\*\*)?)+$/, '')
  try {
    const test = toPathTest(trimmed.split('/').map(foldPattern).join('/'))
    if (!pattern.replace(/\/(?:\*\*)?$/, '').includes('/')) return { pattern, fits: (names) => names.some(test) }
    return { pattern, fits: (names) => names.some((_name, at) => test(names.slice(0, at + 1).join('/'))) }
  } catch (error) {
    throw invalidOption('files', `"${pattern}" in "${option}" cannot be understood: ${messageOf(error)}`, pattern)
  }
}

/** A pattern is folded as names are, without its ends: `.env.*` must keep its dots. */
function foldPattern(pattern: string): string {
  return foldName(`${pattern}|`).slice(0, -1)
}
