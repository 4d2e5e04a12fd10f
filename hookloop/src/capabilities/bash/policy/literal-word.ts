type ReadWord = {
  /** The index after the word. */
  readonly end: number
  /** The word after quote removal, or null if bash would expand it. */
  readonly value: string | null
}

/** Characters that end an unquoted word. */
const METACHARACTERS = new Set(' \t\n|&;()<>')

/** Characters that make a dollar sign an expansion, also in double quotes and after a line continuation. */
const EXPANDS = /^(?:[A-Za-z0-9_{([@*#?$!-]|\\\n)/

/** The text of a word after quote removal, or null if bash would expand it, or if it is not exactly one word. */
export function literalWord(text: string): string | null {
  const word = readWord(text, 0)
  return word === undefined || word.end !== text.length ? null : word.value
}

/** Reads one word as bash does, independently of the parser, so that both can be compared. Undefined if a quote is not closed. */
export function readWord(source: string, start: number): ReadWord | undefined {
  const word: Reading = { value: '', isLiteral: true, braces: 0 }
  let at = start
  while (at < source.length && !METACHARACTERS.has(source[at]!)) {
    const next = readPart(source, at, { word, start })
    if (next === undefined) return undefined
    at = next
  }
  // `[` alone is the name of a builtin, not a pattern.
  const isBracket = source.slice(start, at) === '['
  return { end: at, value: word.isLiteral || isBracket ? word.value : null }
}

/** `braces` is the number of open braces: a comma between them makes a list. */
type Reading = { value: string; isLiteral: boolean; braces: number }
type Place = { readonly word: Reading; readonly start: number }

function readPart(source: string, at: number, { word, start }: Place): number | undefined {
  const character = source[at]!
  switch (character) {
    case "'":
      return readSingleQuotes(source, at, word)
    case '"':
      return readDoubleQuotes(source, at, word)
    case '\\':
      return readEscape(source, at, word)
    case '$':
      return readDollar(source, at, word)
    case '`':
    case '*':
    case '?':
    case '[':
      word.isLiteral = false
      break
    case '~': // expands at the start of a word and of a value
      if (at === start || source[at - 1] === '=' || source[at - 1] === ':') word.isLiteral = false
      break
    case '{':
      word.braces += 1
      break
    case '}':
      word.braces = Math.max(0, word.braces - 1)
      break
    case ',':
      if (word.braces > 0) word.isLiteral = false
      break
    case '.':
      if (word.braces > 0 && source[at + 1] === '.') word.isLiteral = false
      break
    default:
  }
  word.value += character
  return at + 1
}

function readSingleQuotes(source: string, at: number, word: Reading): number | undefined {
  const end = source.indexOf("'", at + 1)
  if (end === -1) return undefined
  word.value += source.slice(at + 1, end)
  return end + 1
}

function readDoubleQuotes(source: string, at: number, word: Reading): number | undefined {
  let next = at + 1
  while (next < source.length) {
    const character = source[next]!
    if (character === '"') return next + 1
    if (character === '\\' && '$`"\\\n'.includes(source[next + 1] ?? 'x')) {
      if (source[next + 1] !== '\n') word.value += source[next + 1]!
      next += 2
      continue
    }
    if (character === '`' || (character === '$' && EXPANDS.test(source.slice(next + 1, next + 3))))
      word.isLiteral = false
    word.value += character
    next += 1
  }
  return undefined
}

/** A line continuation in a word can hide its value, and a backslash at the end escapes nothing. */
function readEscape(source: string, at: number, word: Reading): number {
  const escaped = source[at + 1]
  if (escaped === undefined || escaped === '\n') word.isLiteral = false
  else word.value += escaped
  return Math.min(at + 2, source.length)
}

function readDollar(source: string, at: number, word: Reading): number | undefined {
  const next = source[at + 1] ?? ''
  if (next === "'") return readAnsiQuotes(source, at, word)
  if (next === '"' || next === '`' || EXPANDS.test(source.slice(at + 1, at + 3))) word.isLiteral = false // also `$"…"`, a text to be translated
  word.value += '$'
  return at + 1
}

const ANSI: { readonly [letter: string]: string } = {
  a: '\u0007',
  b: '\b',
  e: '\u001B',
  E: '\u001B',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '?': '?',
}

/** `$'…'` with the escapes for one character. Numeric escapes may be parts of a character, so they are not literal. */
function readAnsiQuotes(source: string, at: number, word: Reading): number | undefined {
  let next = at + 2
  while (next < source.length) {
    const character = source[next]!
    if (character === "'") return next + 1
    if (character !== '\\') {
      word.value += character
      next += 1
      continue
    }
    const meant = ANSI[source[next + 1] ?? '']
    if (meant === undefined) word.isLiteral = false
    else word.value += meant
    next += 2
  }
  return undefined
}
