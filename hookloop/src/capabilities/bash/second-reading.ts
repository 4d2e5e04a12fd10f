import { readWord } from './literal-word.ts'

export type Span = { readonly pos: number; readonly end: number }

export type SecondReading = {
  /** Where each word begins and ends. */
  readonly words: readonly Span[]
  /** How many parentheses open and close something. */
  readonly opening: number
  readonly closing: number
}

/**
 * What is in a command that has nothing but literal words, found without the parser. Undefined when there is more in it
 * than that. What the parser found must be the same, or one of the two is wrong.
 */
export function secondReading(source: string): SecondReading | undefined {
  const words: Span[] = []
  const parentheses = { '(': 0, ')': 0 }
  const pending: HereDocument[] = []
  let at = 0
  while (at < source.length) {
    const character = source[at]!
    if (character === '\n') {
      const after = skipHereDocuments(source, at + 1, pending)
      if (after === undefined) return undefined
      at = after
    } else if (BLANKS_AND_OPERATORS.has(character)) {
      if (character === '(' || character === ')') parentheses[character] += 1
      const operator = hereOperator(source, at)
      at += operator.length
      if (operator !== '<<' && operator !== '<<-') continue
      const delimiter = delimiterAt(source, at)
      if (delimiter === undefined) return undefined
      words.push(delimiter.span)
      pending.push({ ...delimiter, stripsTabs: operator === '<<-' })
      at = delimiter.span.end
    } else if (character === '\\' && source[at + 1] === '\n' && ' \t\n'.includes(source[at - 1] ?? ' ')) {
      at += 2
    } else if (character === '#') {
      const end = source.indexOf('\n', at)
      at = end === -1 ? source.length : end
    } else {
      const word = readWord(source, at)
      if (word === undefined) return undefined
      if (!isDescriptor(source, { pos: at, end: word.end })) words.push({ pos: at, end: word.end })
      at = word.end
    }
  }
  if (pending.length > 0) return undefined
  return { words, opening: parentheses['('], closing: parentheses[')'] }
}

const BLANKS_AND_OPERATORS = new Set(' \t|&;()<>')

/** Words of the grammar, which the parser does not give as words. */
export const reservedWords: ReadonlySet<string> = new Set(
  'if then elif else fi while until do done case in esac { } ! time'.split(' '),
)

type HereDocument = { readonly value: string; readonly isQuoted: boolean; readonly stripsTabs: boolean }

/** The operator of a here-document as a whole, of the others one character. */
function hereOperator(source: string, at: number): string {
  for (const operator of ['<<<', '<<-', '<<']) if (source.startsWith(operator, at)) return operator
  return source[at]!
}

function delimiterAt(
  source: string,
  from: number,
): { readonly value: string; readonly isQuoted: boolean; readonly span: Span } | undefined {
  let pos = from
  while (source[pos] === ' ' || source[pos] === '\t') pos += 1
  const word = readWord(source, pos)
  if (word === undefined || word.end === pos || word.value === null || word.value.includes('\n')) return undefined
  return {
    value: word.value,
    isQuoted: /['"\\]/.test(source.slice(pos, word.end)),
    span: { pos, end: word.end },
  }
}

/** Where the lines of all documents that begin here end, or undefined when one does not end or expands something. */
function skipHereDocuments(source: string, from: number, pending: HereDocument[]): number | undefined {
  let at = from
  for (const document of pending.splice(0)) {
    for (;;) {
      if (at >= source.length) return undefined
      const newline = source.indexOf('\n', at)
      const end = newline === -1 ? source.length : newline
      const line = source.slice(at, end)
      at = newline === -1 ? end : end + 1
      if ((document.stripsTabs ? line.replace(/^\t+/, '') : line) === document.value) break
      if (!document.isQuoted && /[$`\\]/.test(line)) return undefined
    }
  }
  return at
}

/** The 2 of `2>`. */
function isDescriptor(source: string, { pos, end }: Span): boolean {
  return (source[end] === '<' || source[end] === '>') && /^\d+$/.test(source.slice(pos, end))
}
