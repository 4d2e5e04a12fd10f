import { readWord, variablesIn, type SkipCommands } from './literal-word.ts'

export type Span = { readonly pos: number; readonly end: number }

/** The positions of all words, and the numbers of opening and closing parentheses. */
type Reading = { readonly words: Span[]; opening: number; closing: number }

/**
 * Reads a command of literal words without the parser; undefined if it has anything else. If the parser found something else, one of
 * the two is wrong, and nothing is allowed.
 */
export function secondReading(source: string): Readonly<Reading> | undefined {
  const read: Reading = { words: [], opening: 0, closing: 0 }
  return readUntilEnd(source, 0, read, false) === undefined ? undefined : read
}

/** Skips commands in parentheses, and adds their words. */
export function skipInto(read: Reading = { words: [], opening: 0, closing: 0 }): SkipCommands {
  return (source, from) => {
    const own: Reading = { words: read.words, opening: 0, closing: 0 }
    const end = readUntilEnd(source, from, own, true)
    read.opening += own.opening
    read.closing += own.closing
    return end
  }
}

/** The index after the last character, or after the parenthesis that ends a nested text. */
function readUntilEnd(source: string, from: number, read: Reading, isNested: boolean): number | undefined {
  const skip = skipInto(read)
  const documents: HereDocument[] = []
  let at: number | undefined = from
  while (at !== undefined && at < source.length) {
    const character = source[at]!
    if (character === '\n') {
      at = skipHereDocuments(source, at + 1, documents.splice(0))
    } else if (/^<<-?(?!<)/.test(source.slice(at, at + 4))) {
      const document = hereDocumentAt(source, at, isNested)
      if (document === undefined) return undefined
      if (documents.push(document) > 1 && isNested) return undefined
      read.words.push(document.delimiter)
      at = document.delimiter.end
    } else if (BLANKS_AND_OPERATORS.has(character) && !source.startsWith('<(', at)) {
      if (character === ')' && isNested && read.opening === read.closing)
        return documents.length > 0 ? undefined : at + 1
      if (character === '(') read.opening += 1
      else if (character === ')') read.closing += 1
      at += source.startsWith('<<<', at) ? 3 : 1
    } else if (character === '\\' && source[at + 1] === '\n' && ' \t\n'.includes(source[at - 1] ?? ' ')) {
      at += 2
    } else if (character === '#') {
      if (isNested) return undefined // in `"$(…)"` an older bash has no comments
      const end = source.indexOf('\n', at)
      at = end === -1 ? source.length : end
    } else {
      const end: number = readWord(source, at, skip)?.end ?? at
      if (end === at) return undefined
      const isDescriptor = /^\d+[<>]$/.test(source.slice(at, end + 1)) // the `2` of `2>`
      if (!isDescriptor) read.words.push({ pos: at, end })
      at = end
    }
  }
  return documents.length > 0 || isNested ? undefined : at
}

const BLANKS_AND_OPERATORS = new Set(' \t|&;()<>')

/** Reserved words, which the parser does not return as words. */
export const reservedWords: ReadonlySet<string> = new Set(
  'if then elif else fi for while until do done in { } ! time'.split(' '),
)

type HereDocument = {
  readonly delimiter: Span
  readonly end: string
  readonly isQuoted: boolean
  readonly stripsTabs: boolean
  readonly isNested: boolean
}

function hereDocumentAt(source: string, at: number, isNested: boolean): HereDocument | undefined {
  const stripsTabs = source[at + 2] === '-'
  let pos = at + (stripsTabs ? 3 : 2)
  while (source[pos] === ' ' || source[pos] === '\t') pos += 1
  const { end = pos, value = null } = readWord(source, pos) ?? {}
  if (end === pos || value === null || value.includes('\n')) return undefined
  return { delimiter: { pos, end }, end: value, isQuoted: /['"\\]/.test(source.slice(pos, end)), stripsTabs, isNested }
}

/** The end of all here-documents that start here; undefined if one has no end or has an expansion that is not understood. */
function skipHereDocuments(source: string, from: number, documents: readonly HereDocument[]): number | undefined {
  let at = from
  for (const { end, isQuoted, stripsTabs, isNested } of documents) {
    const start = at
    for (let line: string | undefined; line !== end;) {
      if (at >= source.length) return undefined
      const newline = source.indexOf('\n', at)
      const text = source.slice(at, newline === -1 ? undefined : newline)
      line = stripsTabs ? text.replace(/^\t+/, '') : text
      if (line === end && !isQuoted && variablesIn(source.slice(start, at)) === undefined) return undefined
      // Inside of parentheses bash 5.2 ends it at a line that only starts with the delimiter.
      if (isNested && (line === end ? !hasClearEnd(source.slice(start, at), source.slice(at)) : line.startsWith(end)))
        return undefined
      at += text.length + 1
    }
  }
  return Math.min(at, source.length)
}

/**
 * Bash before version 4, which macOS has, counts parentheses and reads quotes also in a here-document inside of `$(…)`. The body must
 * have only complete parentheses with plain text, and if it has quotes, there must be no other end than that of the substitution.
 */
function hasClearEnd(body: string, rest: string): boolean {
  const left = body.replace(/(?<!\\)\((?:[^()'"`\\{}[\]\s]|[ \t](?!#))*\)/g, '')
  const isOnly = rest.indexOf(')') === rest.lastIndexOf(')')
  return !/[()]/.test(left) && (isOnly || !/['"`\\{[#]/.test(left))
}
