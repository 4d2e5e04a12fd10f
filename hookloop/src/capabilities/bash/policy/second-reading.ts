import { readText, readWord, type SkipCommands } from './literal-word.ts'

export type Span = { readonly pos: number; readonly end: number }

export type SecondReading = {
  /** The positions of all words. */
  readonly words: readonly Span[]
  /** The numbers of opening and closing parentheses. */
  readonly opening: number
  readonly closing: number
}

/**
 * Reads a command of literal words without the parser; undefined if it has anything else. If the parser found something else, one of
 * the two is wrong, and nothing is allowed.
 */
export function secondReading(source: string): SecondReading | undefined {
  const read: Reading = { words: [], opening: 0, closing: 0 }
  return readUntil(source, 0, { read, isNested: false }) === undefined ? undefined : read
}

/** Skips commands in parentheses, and adds their words. */
export function skipInto(read: Reading = { words: [], opening: 0, closing: 0 }): SkipCommands {
  return (source, from) => {
    const own: Reading = { words: read.words, opening: 0, closing: 0 }
    const end = readUntil(source, from, { read: own, isNested: true })
    read.opening += own.opening
    read.closing += own.closing
    return end
  }
}

type Reading = { readonly words: Span[]; opening: number; closing: number }

/** The index after the last character, or after the parenthesis that ends a nested text. */
function readUntil(
  source: string,
  from: number,
  { read, isNested }: { readonly read: Reading; readonly isNested: boolean },
): number | undefined {
  const { words } = read
  const skip = skipInto(read)
  const pending: HereDocument[] = []
  let at = from
  while (at < source.length) {
    const character = source[at]!
    if (character === '\n') {
      const after = skipHereDocuments(source, at + 1, { pending, skip })
      if (after === undefined) return undefined
      at = after
    } else if (BLANKS_AND_OPERATORS.has(character) && !source.startsWith('<(', at)) {
      if (character === '(') read.opening += 1
      else if (character === ')' && isNested && read.opening === read.closing)
        return pending.length > 0 ? undefined : at + 1
      else if (character === ')') read.closing += 1
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
      const word = readWord(source, at, skip)
      if (word === undefined || word.end === at) return undefined
      if (!isDescriptor(source, { pos: at, end: word.end })) words.push({ pos: at, end: word.end })
      at = word.end
    }
  }
  return pending.length > 0 || isNested ? undefined : at
}

const BLANKS_AND_OPERATORS = new Set(' \t|&;()<>')

/** Reserved words, which the parser does not return as words. */
export const reservedWords: ReadonlySet<string> = new Set(
  'if then elif else fi for while until do done case in esac { } ! time'.split(' '),
)

type HereDocument = { readonly value: string; readonly isQuoted: boolean; readonly stripsTabs: boolean }

/** The complete operator of a here-document or here-string; otherwise one character. */
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

/** The end of all here-documents that start here; undefined if one has no end or has an expansion. */
function skipHereDocuments(
  source: string,
  from: number,
  { pending, skip }: { readonly pending: HereDocument[]; readonly skip: SkipCommands },
): number | undefined {
  let at = from
  for (const document of pending.splice(0)) {
    const start = at
    for (;;) {
      if (at >= source.length) return undefined
      const newline = source.indexOf('\n', at)
      const end = newline === -1 ? source.length : newline
      const line = source.slice(at, end)
      at = newline === -1 ? end : end + 1
      if ((document.stripsTabs ? line.replace(/^\t+/, '') : line) !== document.value) continue
      if (!document.isQuoted && readText(source, start, end - line.length, skip) === undefined) return undefined
      break
    }
  }
  return at
}

/** The `2` of `2>`. */
function isDescriptor(source: string, { pos, end }: Span): boolean {
  return (source[end] === '<' || source[end] === '>') && /^\d+$/.test(source.slice(pos, end))
}
