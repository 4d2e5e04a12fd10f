import type { Redirection } from 'unbash'
import { literalWord } from './literal-word.ts'

/** Why a redirection cannot be part of what a rule allows, or undefined when it does no more than read or drop. */
export function redirectionHazard(redirect: Redirection): string | undefined {
  if (redirect.descriptor?.type === 'FileDescriptorVariable') return 'a redirection sets a variable'
  if (redirect.type === 'HereDoc') return hereDocumentHazard(redirect)
  const target = redirect.target === undefined ? null : literalWord(redirect.target.text)
  if (target === null) return 'what it redirects is not literal'
  switch (redirect.operator) {
    case '<<<':
      return undefined
    case '<':
      return NETWORK.test(target) ? 'it opens a network connection' : undefined
    case '<&':
      return DESCRIPTOR.test(target) ? undefined : 'what it redirects is not a descriptor'
    case '>&':
      return DESCRIPTOR.test(target) || harmlessTargets.has(target) ? undefined : writes(target)
    case '>':
    case '>>':
    case '>|':
    case '&>':
    case '&>>':
    case '<>':
      return harmlessTargets.has(target) ? undefined : writes(target)
    default:
      return redirect satisfies never
  }
}

/** Bash itself opens these. */
const NETWORK = /\/dev\/(?:tcp|udp)\//

const DESCRIPTOR = /^(?:\d+-?|-)$/

const harmlessTargets: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr'])

function writes(target: string): string {
  return `it writes to ${target}`
}

function hereDocumentHazard({ delimiter, body }: Extract<Redirection, { type: 'HereDoc' }>): string | undefined {
  if (delimiter === undefined) return 'a here-document has no end'
  const isExpanded = !delimiter.quoted && /[$`]/.test(body.text)
  return isExpanded ? 'a here-document expands something' : undefined
}
