import { readWord } from './literal-word.ts'

export type Span = { readonly pos: number; readonly end: number }

/** The positions of all words, and the numbers of opening and closing parentheses. */
type Reading = { readonly words: readonly Span[]; readonly opening: number; readonly closing: number }

/**
 * Reads a command of plain words without the parser; undefined if it has anything else. If the parser found something else, one of
 * the two is wrong, and nothing is allowed.
 */
export function crossCheckParse(source: string): Reading | undefined {
  const words: Span[] = []
  let [at, opening, closing] = [0, 0, 0]
  while (at < source.length) {
    const character = source[at]!
    if (/^<(?:<(?!<)|\()/.test(source.slice(at, at + 3))) return undefined // a here-document or a process substitution
    if (BLANKS_AND_OPERATORS.has(character)) {
      if (character === '(') opening += 1
      else if (character === ')') closing += 1
      at += source.startsWith('<<<', at) ? 3 : 1
    } else if (character === '\\' && source[at + 1] === '\n' && ' \t\n'.includes(source[at - 1] ?? ' ')) {
      at += 2
    } else if (character === '#') {
      const end = source.indexOf('\n', at)
      at = end === -1 ? source.length : end
    } else {
      const end = readWord(source, at)?.end ?? at
      if (end === at) return undefined
      const isDescriptor = /^\d+[<>]$/.test(source.slice(at, end + 1)) // the `2` of `2>`
      if (!isDescriptor) words.push({ pos: at, end })
      at = end
    }
  }
  return { words, opening, closing }
}

const BLANKS_AND_OPERATORS = new Set(' \t\n|&;()<>')

/** Reserved words, which the parser does not return as words. */
export const reservedWords: ReadonlySet<string> = new Set(
  'if then elif else fi while until do done { } ! time'.split(' '),
)
