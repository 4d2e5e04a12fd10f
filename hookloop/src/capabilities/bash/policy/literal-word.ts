/** How bash changes a word with variables and patterns only. */
export type Expansion = {
  /** What every resulting word begins with: `/` stands for an absolute path, an empty text for anything. */
  readonly prefix: string
  /** Whether the result is exactly one word. */
  readonly isOne: boolean
  readonly hasGlob: boolean
  /** The names of variables. One in arithmetic begins with `+`: bash evaluates its value. */
  readonly variables: readonly string[]
}

/** The end of a command substitution whose commands start at an index; undefined if it is not understood. */
export type SkipCommands = (source: string, from: number, to?: number) => number | undefined

type ReadWord = {
  /** The index after the word. */
  readonly end: number
  /** The word after quote removal, or null if bash would expand it. */
  readonly value: string | null
  /** The word after quote removal, with its expansions as written. */
  readonly text: string
  /** Undefined if it is literal, or has another expansion. */
  readonly expansion: Expansion | undefined
}

/** Characters that end an unquoted word. */
const METACHARACTERS = new Set(' \t\n|&;()<>')

/** Characters that make a dollar sign an expansion, also in double quotes and after a line continuation. */
const EXPANDS = /^(?:[A-Za-z0-9_{([@*#?$!-]|\\\n)/

/** The text of a word after quote removal, or null if bash would expand it, or if it is not exactly one word. */
export function literalWord(text: string): string | null {
  return completeWord(text)?.value ?? null
}

/** Reads a text that must be exactly one word. */
export function completeWord(text: string, skip?: SkipCommands): ReadWord | undefined {
  const word = readWord(text, 0, skip)
  return word?.end === text.length ? word : undefined
}

/** Reads one word as bash does, independently of the parser, so that both can be compared. Undefined if a quote is not closed. */
export function readWord(source: string, start: number, skip?: SkipCommands): ReadWord | undefined {
  const word: Reading = { value: '', isLiteral: true, braces: 0, expansion: undefined, skip }
  let at = start
  if (source.startsWith('<(', start)) at = readCommands(source, start, word, true)
  while (at < source.length && !METACHARACTERS.has(source[at]!)) {
    const next = readPart(source, at, { word, start })
    if (next === undefined) return undefined
    at = next
  }
  // `[` alone is the name of a builtin, not a pattern.
  if (source.slice(start, at) === '[') return { end: at, value: '[', text: '[', expansion: undefined }
  const expansion = word.isLiteral ? word.expansion : undefined
  const isLiteral = word.isLiteral && expansion === undefined
  return { end: at, value: isLiteral ? word.value : null, text: word.value, expansion }
}

function expand(word: Reading, kind: 'glob' | 'one' | 'optional' | 'many', { start = '', name = '' } = {}): void {
  const { prefix = word.value || start, isOne = true, hasGlob = false, variables = [] } = word.expansion ?? {}
  word.expansion = {
    prefix: kind === 'many' ? '' : prefix,
    isOne: isOne && (kind === 'one' || (kind === 'optional' && word.value !== '')),
    hasGlob: hasGlob || kind === 'glob',
    variables: name === '' ? variables : [...variables, name],
  }
}

/** Reads the text of a here-document like a text in double quotes. Undefined if it has an expansion that is not understood. */
export function readText(
  source: string,
  from: number,
  to: number,
  skip?: SkipCommands,
): Expansion | 'plain' | undefined {
  const word: Reading = { value: '', isLiteral: true, braces: 0, expansion: undefined, skip }
  let at = from
  while (at < to) {
    if (source[at] === '\\' && '$`\\'.includes(source[at + 1] ?? 'x')) at += 2
    else if (source[at] === '\\' && source[at + 1] === '\n') return undefined
    else if (source[at] === '$' && EXPANDS.test(source.slice(at + 1, at + 3))) at = readVariable(source, at, word, true)
    else if (source[at] === '`') return undefined
    else at += 1
  }
  if (at > to || !word.isLiteral) return undefined
  return word.expansion ?? 'plain'
}

/** `$name`, `${name}`, and operations with a plain text: `${name%.ts}`. Anything else after a dollar sign is another expansion. */
const VARIABLE =
  /^(?:([A-Za-z_]\w*|[?#$1-9@*])|\{(#?)([A-Za-z_]\w*)(?:\[(?:([@*])|\d+)\])?((?:(?:%%?|##?|\/\/?|\^\^?|,,?|:?[-+])[^$`"'\\{}()~\n]*|:\d+(?::\d+)?)?)\})/

/** Arithmetic without subscripts and quotes. */
const ARITHMETIC = /^\(\(([\w\s+\-*/%<>=!&|?:,$]*)\)\)/

/** Variables without blanks or patterns in their value, and what it begins with. */
const plainVariables: { readonly [name: string]: string } = {
  '?': '0',
  '#': '0',
  $: '0',
  HOME: '/',
  UID: '0',
  PPID: '0',
}

function readVariable(source: string, at: number, word: Reading, isQuoted: boolean): number {
  if (source[at + 1] === '(') return readCommands(source, at, word, isQuoted)
  const match = VARIABLE.exec(source.slice(at + 1, at + MAX_NAME))
  const name = match?.[1] ?? match?.[3]
  const isCut = match?.[0].length === MAX_NAME - 1
  if (match === null || name === undefined || isCut || (match[2] === '#' && match[5] !== '')) {
    word.isLiteral = false
    word.value += '$'
    return at + 1
  }
  const isWhole = (match[5] ?? '') === ''
  const plain = isWhole && Object.hasOwn(plainVariables, name) ? plainVariables[name]! : undefined
  const start = match[2] === '#' ? '0' : plain
  const isList = name === '@' || name === '*' || (match[4] !== undefined && match[2] !== '#')
  if ((isQuoted && !isList) || start !== undefined)
    expand(word, 'one', { name, start: start ?? (isWhole && name === 'PWD' ? '/' : '') })
  else expand(word, 'many', { name })
  word.value += source.slice(at, at + 1 + match[0].length)
  return at + 1 + match[0].length
}

const MAX_NAME = 200

/** `$(…)`, `<(…)` and `$((…))`. The commands in it are judged like all others; what they print is not known. */
function readCommands(source: string, at: number, word: Reading, isQuoted: boolean): number {
  const arithmetic = source[at] === '$' ? ARITHMETIC.exec(source.slice(at + 1, at + MAX_NAME)) : null
  const isPlain = arithmetic !== null && !/\$(?![A-Za-z_?])|\w\$/.test(arithmetic[1]!)
  // The value of an argument is not known, and `x$y` is another name.
  if (arithmetic !== null && !isPlain) word.isLiteral = false
  if (arithmetic !== null) {
    const names = arithmetic[1]!.match(/\b[A-Za-z_]\w*/g) ?? []
    expand(word, isQuoted ? 'one' : 'many')
    for (const name of names) expand(word, 'one', { name: `+${name}` })
  }
  const isCommand = arithmetic === null && !source.startsWith('((', at + 1)
  const end = isCommand ? word.skip?.(source, at + 2) : at + 1 + (arithmetic?.[0].length ?? 0)
  if (end === undefined || end === at + 1) {
    word.isLiteral = false
    word.value += source[at]!
    return at + 1
  }
  if (isCommand) {
    const start = startOf(source.slice(at, end))
    // A command that fails prints nothing, and without quotes there is no word then.
    expand(word, isQuoted ? 'one' : start === '0' ? 'optional' : 'many', { start })
  }
  word.value += source.slice(at, end)
  return end
}

/** What the output of a command is known to begin with. */
function startOf(substitution: string): string {
  if (/^<\(|^\$\(pwd\)$/.test(substitution)) return '/'
  return isNumber(substitution) || HASH.test(substitution) ? '0' : ''
}

/** What is no revision is printed as it is, so it must not begin like an absolute path. */
const REVISION = String.raw`[\w@][\w./~^@]*`
const HASH = new RegExp(String.raw`^\$\(git (?:merge-base(?: ${REVISION}){2}|rev-parse(?: --short)? ${REVISION})\)$`)

/** Commands that print a number. A pipe is single, and nothing else prints. */
const COUNTS = [
  String.raw`(?:[^()'"\`;&\n\\|]+\|\s*)*wc -[lwcm](?: ?< ?[\w./"$-]+)?`,
  String.raw`date \+%s|nproc|seq(?: \d+){1,3}|git rev-list --count [\w./~^@ -]+`,
].join('|')
const NUMBER = new RegExp(String.raw`^(?:\d+|\$\(\([^()]*\)\)|\$(?:[?#]|SECONDS|RANDOM)|\$\((?:${COUNTS})\))$`)

/** Whether a word is the output of a command that is one plain word. */
export function isPlainOutput(text: string): boolean {
  const bare = text.replace(/^"(.*)"$/, '$1')
  return /^\$\((?!\()/.test(bare) && startOf(bare) === '0'
}

/** Whether a word expands to a number. */
export function isNumber(text: string): boolean {
  return NUMBER.test(text.replace(/^"(.*)"$/, '$1'))
}

/** `isLiteral` allows variables and patterns. `braces` is the number of open braces: a comma between them makes a list. */
type Reading = {
  value: string
  isLiteral: boolean
  braces: number
  expansion: Expansion | undefined
  readonly skip: SkipCommands | undefined
}
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
      return readBackticks(source, at, word, false)
    case '*':
    case '?':
    case '[':
      expand(word, 'glob')
      break
    case '~': // expands at the start of a word and of a value
      if (at === start && HOME_FOLDER.test(source.slice(at + 1, at + 2))) expand(word, 'one', { start: '/', name: '~' })
      else if (at === start || source[at - 1] === '=' || source[at - 1] === ':') word.isLiteral = false
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

/** What follows a `~` that is the home folder. */
const HOME_FOLDER = /^(?:\/|[\s;&|)]|$)/

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
      else if (word.expansion !== undefined) word.isLiteral = false // it may continue the name of a variable
      next += 2
      continue
    }
    if (character === '$' && EXPANDS.test(source.slice(next + 1, next + 3))) {
      next = readVariable(source, next, word, true)
      continue
    }
    if (character === '`') {
      next = readBackticks(source, next, word, true)
      continue
    }
    word.value += character
    next += 1
  }
  return undefined
}

/** Plain words in backticks. Others are read differently in quotes. */
function readBackticks(source: string, at: number, word: Reading, isQuoted: boolean): number {
  const [text = ''] = /^`[\w\s./:=+%,@-]*`/.exec(source.slice(at, at + MAX_NAME)) ?? []
  const end = at + text.length
  const isRead = text !== '' && word.skip?.(source, at + 1, end - 1) !== undefined
  if (isRead) expand(word, isQuoted ? 'one' : 'many')
  else word.isLiteral = false
  word.value += isRead ? text : '`'
  return isRead ? end : at + 1
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
  if (EXPANDS.test(source.slice(at + 1, at + 3))) return readVariable(source, at, word, false)
  if (next === '"' || next === '`') word.isLiteral = false // `$"…"` is a text to be translated
  word.value += '$'
  return at + 1
}

/** The letters of escapes for one character, and their values in the same order. */
const ANSI = ['abeEfnrtv\\\'"?', '\u0007\b\u001B\u001B\f\n\r\t\v\\\'"?'] as const

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
    const meant = ANSI[0].indexOf(source[next + 1] ?? ' ')
    if (meant === -1) word.isLiteral = false
    else word.value += ANSI[1][meant]!
    next += 2
  }
  return undefined
}
