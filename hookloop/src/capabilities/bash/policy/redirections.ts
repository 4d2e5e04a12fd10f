import type { Redirection } from 'unbash'
import { isDataFile } from './kinds.ts'
import { toWord } from './understand-word.ts'

/** Why no rule can allow redirections, and the files that they write. */
export function effectsOf(redirects: readonly Redirection[]): {
  readonly hazards: readonly string[]
  readonly writes: readonly string[]
} {
  const effects = redirects.flatMap((redirect) => effectOf(redirect) ?? [])
  return {
    hazards: effects.filter((effect) => typeof effect === 'string'),
    writes: effects.flatMap((effect) => (typeof effect === 'object' ? [effect.writes] : [])),
  }
}

/** Why no rule can allow a redirection, or the file that it writes; undefined if it only reads or discards. */
function effectOf(redirect: Redirection): string | { readonly writes: string } | undefined {
  if (redirect.descriptor?.type === 'FileDescriptorVariable') return 'a redirection sets a variable'
  if (redirect.type === 'HereDoc') return 'it has a here-document'
  const target = redirect.target === undefined ? null : toWord(redirect.target).value
  const { operator } = redirect
  if (target === null) return 'the target of a redirection is not literal'
  if (operator === '<<<') return undefined
  if (operator === '<') return NETWORK.test(target) ? 'it may open a network connection' : undefined
  if (/^[<>]&$/.test(operator) && /^(?:\d+-?|-)$/.test(target)) return undefined
  if (operator === '<&') return 'the target of a redirection is not a descriptor'
  if (/^\/dev\/(?:null|stdout|stderr)$/.test(target)) return undefined
  return isDataFile(target) ? { writes: target } : `it writes to ${target}`
}

/** Bash opens network connections for these paths. */
const NETWORK = /\/dev\/(?:tcp|udp)\//
