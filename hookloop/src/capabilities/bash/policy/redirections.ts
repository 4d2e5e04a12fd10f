import type { Redirection } from 'unbash'
import { isDataFile } from './kinds.ts'
import { variablesIn } from './literal-word.ts'
import { isAtHome, isKnown, toWord, type Known } from './understand-word.ts'

/** Why no rule can allow redirections, and the files that they write. */
export function effectsOf(
  redirects: readonly Redirection[],
  known: Known,
  folders: readonly string[],
): { readonly hazards: readonly string[]; readonly writes: readonly string[] } {
  const effects = redirects.flatMap((redirect) => {
    const effect = effectOf(redirect, known)
    if (typeof effect !== 'object') return effect === undefined ? [] : [effect]
    return folders.map((folder) => {
      const path = folder === '.' ? effect.writes : `${folder}/${effect.writes}`
      return isDataFile(path) ? { writes: path } : `it writes to ${effect.writes}`
    })
  })
  return {
    hazards: effects.filter((effect) => typeof effect === 'string'),
    writes: effects.flatMap((effect) => (typeof effect === 'object' ? [effect.writes] : [])),
  }
}

/** Why no rule can allow a redirection, or the file that it writes; undefined if it only reads or discards. */
function effectOf(redirect: Redirection, known: Known): string | { readonly writes: string } | undefined {
  if (redirect.descriptor?.type === 'FileDescriptorVariable') return 'a redirection sets a variable'
  if (redirect.type === 'HereDoc') {
    if (redirect.delimiter === undefined) return 'a here-document has no end'
    const variables = redirect.delimiter.quoted ? [] : variablesIn(redirect.body.text)
    return variables !== undefined && isKnown(variables, known) ? undefined : 'a here-document has an expansion'
  }
  const word = redirect.target === undefined ? undefined : toWord(redirect.target, known)
  const { operator } = redirect
  if (word === undefined || (word.value === null && (word.expansion?.isOne !== true || isAtHome(word))))
    return 'the target of a redirection is not literal'
  if (operator === '<<<') return undefined
  const { value: target, loose } = word
  if (operator === '<') {
    const { prefix = '', hasGlob = false } = word.expansion ?? {}
    // An expansion must not be the address of a network connection.
    const isFile =
      target === null ? /^[\w.]/.test(prefix) || (hasGlob && prefix === '') || loose.startsWith('<(') : true
    return isFile && !NETWORK.test(loose) ? undefined : 'it may open a network connection'
  }
  if (target === null) return 'the target of a redirection is not literal'
  if (/^[<>]&$/.test(operator) && /^(?:\d+-?|-)$/.test(target)) return undefined
  if (operator === '<&') return 'the target of a redirection is not a descriptor'
  return /^\/dev\/(?:null|stdout|stderr)$/.test(target) ? undefined : { writes: target }
}

/** Bash opens network connections for these paths. */
const NETWORK = /\/dev\/(?:tcp|udp)\//
