import type { Redirection } from 'unbash'
import { isDataFile } from './kinds.ts'
import { literalWord } from './literal-word.ts'
import { wholeText } from './second-reading.ts'
import { isAtHome, isKnown, toWord, type Known, type ParsedWord } from './understand-word.ts'

type Place = Known & { readonly folders: readonly string[] }

/** Why no rule can allow redirections, and the files that they write. */
export function effectsOf(
  redirects: readonly Redirection[],
  known: Place,
): { readonly hazards: readonly string[]; readonly writes: readonly string[] } {
  const effects = redirects.flatMap((redirect) => {
    const effect = effectOf(redirect, known)
    if (typeof effect !== 'object') return effect === undefined ? [] : [effect]
    return known.folders.map((folder) => {
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
  if (redirect.type === 'HereDoc') return hereDocumentHazard(redirect, known)
  if (redirect.target !== undefined && isReadable(redirect.operator, toWord(redirect.target, known))) return undefined
  const target = redirect.target === undefined ? null : literalWord(redirect.target.text)
  if (target === null) return 'the target of a redirection is not literal'
  switch (redirect.operator) {
    case '<<<':
      return undefined
    case '<':
      return NETWORK.test(target) ? 'it opens a network connection' : undefined
    case '<&':
      return DESCRIPTOR.test(target) ? undefined : 'the target of a redirection is not a descriptor'
    case '>&':
      return DESCRIPTOR.test(target) ? undefined : writes(target)
    case '>':
    case '>>':
    case '>|':
    case '&>':
    case '&>>':
    case '<>':
      return writes(target)
    default:
      return redirect satisfies never
  }
}

/** Whether a redirection reads an expansion that cannot be the address of a network connection. */
function isReadable(operator: string, word: ParsedWord): boolean {
  const { isOne = false, prefix = '/' } = word.expansion ?? {}
  if (!isOne || isAtHome(word)) return false
  return (
    operator === '<<<' ||
    (operator === '<' && (/^[\w.]/.test(prefix) || word.isRelative === true || word.loose.startsWith('<(')))
  )
}

/** Bash opens network connections for these paths. */
const NETWORK = /\/dev\/(?:tcp|udp)\//

const DESCRIPTOR = /^(?:\d+-?|-)$/

const harmlessTargets: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr'])

function writes(target: string): ReturnType<typeof effectOf> {
  if (harmlessTargets.has(target)) return undefined
  return isDataFile(target) ? { writes: target } : `it writes to ${target}`
}

function hereDocumentHazard(
  { delimiter, body }: Extract<Redirection, { type: 'HereDoc' }>,
  known: Known,
): string | undefined {
  if (delimiter === undefined) return 'a here-document has no end'
  const read = delimiter.quoted ? 'plain' : wholeText(body.text)
  const isUnknown = read === undefined || (read !== 'plain' && !isKnown(read, known))
  return isUnknown ? 'a here-document has an expansion' : undefined
}
