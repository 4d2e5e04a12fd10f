/** How bash changes a word: by a pattern of files, or `find` by the paths that it found. */
export type Expansion = {
  /** What every resulting word begins with. */
  readonly prefix: string
  /** Whether the result is exactly one word. */
  readonly isOne: boolean
  readonly hasGlob: boolean
}

type ReadWord = {
  /** The index after the word. */
  readonly end: number
  /** The word after quote removal, or null if bash would expand it. */
  readonly value: string | null
  /** The word after quote removal, with its expansions as written. */
  readonly text: string
  /** If it is a pattern of files, and has no other expansion. */
  readonly expansion: Expansion | undefined
}

/** Characters that end an unquoted word. */
const METACHARACTERS = new Set(' \t\n|&;()<>')

/** Characters that make a dollar sign an expansion, also in double quotes and after a line continuation. */
const EXPANDS = /^(?:[A-Za-z0-9_{([@*#?$!-]|\\\n)/

/** Reads a text that must be exactly one word. */
export function completeWord(text: string): ReadWord | undefined {
  const word = readWord(text, 0)
  return word?.end === text.length ? word : undefined
}

/** `isLiteral` allows patterns. `braces` is the number of open braces: a comma between them makes a list. */
type Reading = {
  value: string
  isLiteral: boolean
  isQuoted: boolean
  braces: number
  expansion: Expansion | undefined
}

/** Reads one word as bash does, independently of the parser, so that both can be compared. Undefined if a quote is not closed. */
export function readWord(source: string, start: number): ReadWord | undefined {
  const word: Reading = { value: '', isLiteral: true, isQuoted: false, braces: 0, expansion: undefined }
  let at = start
  while (at < source.length && (word.isQuoted || !METACHARACTERS.has(source[at]!))) {
    const next = source[at] === '"' ? at + 1 : (readExpansion(source, at, word) ?? readPlain(source, at, start, word))
    if (next === undefined) return undefined
    if (source[at] === '"') word.isQuoted = !word.isQuoted
    at = next
  }
  if (word.isQuoted) return undefined
  // `[` alone is the name of a builtin, not a pattern.
  if (source.slice(start, at) === '[') return { end: at, value: '[', text: '[', expansion: undefined }
  const expansion = word.isLiteral ? word.expansion : undefined
  const isLiteral = word.isLiteral && expansion === undefined
  return { end: at, value: isLiteral ? word.value : null, text: word.value, expansion }
}

/** Reads what is an expansion also in double quotes, where a backslash escapes only some characters. */
function readExpansion(source: string, at: number, word: Reading): number | undefined {
  const [character, next] = [source[at], source[at + 1] ?? '']
  if (character === '`' || (character === '$' && EXPANDS.test(source.slice(at + 1, at + 3)))) {
    word.isLiteral = false
    word.value += character
    return at + 1
  }
  if (character !== '\\' || (word.isQuoted && !/^[$`"\\\n]$/.test(next))) return undefined
  // A line continuation can hide a pattern, and a backslash at the end escapes nothing.
  if (next !== '\n' && next !== '') word.value += next
  else if (!word.isQuoted || word.expansion !== undefined) word.isLiteral = false
  return Math.min(at + 2, source.length)
}

function readPlain(source: string, at: number, start: number, word: Reading): number | undefined {
  const character = source[at]!
  const next = source[at + 1] ?? ''
  if (word.isQuoted) {
    word.value += character
    return at + 1
  }
  switch (character) {
    case "'": {
      const end = source.indexOf("'", at + 1)
      word.value += source.slice(at + 1, end)
      return end === -1 ? undefined : end + 1
    }
    case '$':
      if (next === "'" || next === '"') word.isLiteral = false
      break
    case '*':
    case '?':
    case '[':
      word.expansion ??= { prefix: word.value, isOne: false, hasGlob: true }
      break
    case '~': // expands at the start of a word and of a value
      if (at === start || source[at - 1] === '=' || source[at - 1] === ':') word.isLiteral = false
      break
    case '{':
    case '}':
      word.braces = Math.max(0, word.braces + (character === '{' ? 1 : -1))
      break
    case ',':
    case '.':
      if (word.braces > 0 && (character === ',' || next === '.')) word.isLiteral = false
      break
    default:
  }
  word.value += character
  return at + 1
}
