/** How bash changes a word with variables, patterns of files and the output of commands. */
export type Expansion = {
  /** What every resulting word begins with: `/` stands for an absolute path, `0` for a plain word, an empty text for anything. */
  readonly prefix: string
  /** Whether the result is exactly one word. */
  readonly isOne: boolean
  readonly hasGlob: boolean
  readonly variables: readonly string[]
}

/** The end of a command substitution whose commands start at an index; undefined if it is not understood. */
export type SkipCommands = (source: string, from: number) => number | undefined

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

/** Reads a text that must be exactly one word. */
export function completeWord(text: string, skip?: SkipCommands): ReadWord | undefined {
  const word = readWord(text, 0, skip)
  return word?.end === text.length ? word : undefined
}

/** `isLiteral` allows variables and patterns. `braces` is the number of open braces: a comma between them makes a list. */
type Reading = {
  value: string
  isLiteral: boolean
  isQuoted: boolean
  braces: number
  expansion: Expansion | undefined
  readonly skip: SkipCommands | undefined
}

/** Reads one word as bash does, independently of the parser, so that both can be compared. Undefined if a quote is not closed. */
export function readWord(source: string, start: number, skip?: SkipCommands): ReadWord | undefined {
  const word: Reading = { value: '', isLiteral: true, isQuoted: false, braces: 0, expansion: undefined, skip }
  let at = source.startsWith('<(', start) ? readCommands(source, start, word) : start
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

/** The variables in the text of a here-document; undefined if it has another expansion, or a backslash, which may hide its end. */
export function variablesIn(text: string): readonly string[] | undefined {
  if (/[`\\]|\$(?:[([]|\{(?!\w+\}))/.test(text)) return undefined
  return [...text.matchAll(/\$\{?(\w+|[^\w\s])/g)].map(([, name]) => name!)
}

/** Reads what is an expansion also in double quotes, where a backslash escapes only some characters. */
function readExpansion(source: string, at: number, word: Reading): number | undefined {
  const [character, next] = [source[at], source[at + 1] ?? '']
  if (character === '`') return readOther(source, at, word)
  if (character === '$' && EXPANDS.test(source.slice(at + 1, at + 3))) return readVariable(source, at, word)
  if (character !== '\\' || (word.isQuoted && !/^[$`"\\\n]$/.test(next))) return undefined
  // A line continuation can hide a value or the name of a variable, and a backslash at the end escapes nothing.
  if (next !== '\n' && next !== '') word.value += next
  else if (!word.isQuoted || word.expansion !== undefined) word.isLiteral = false
  return Math.min(at + 2, source.length)
}

function expand(word: Reading, kind: 'glob' | 'one' | 'optional' | 'many', { start = '', name = '' } = {}): void {
  const { prefix = word.value || start, isOne = true, hasGlob = false, variables = [] } = word.expansion ?? {}
  word.expansion = {
    prefix: kind === 'many' ? '' : prefix,
    isOne: isOne && (kind === 'one' || (kind === 'optional' && word.value !== '')),
    hasGlob: hasGlob || kind === 'glob',
    variables: name === '' || variables.includes(name) ? variables : [...variables, name],
  }
}

/** An expansion that is not understood. */
function readOther(source: string, at: number, word: Reading): number {
  word.isLiteral = false
  word.value += source[at]!
  return at + 1
}

/** `$name`, `${name}`, `${#name}`, and operations with a plain text: `${name%.ts}`. Anything else after a dollar sign is another expansion. */
const VARIABLE =
  /^(?:([A-Za-z_]\w*|[?!$#])|\{#?([A-Za-z_]\w*)\}|\{([A-Za-z_]\w*)(?:%%?|##?|\/\/?|\^\^?|,,?|:?[-+])[^$`"'\\{}()~\n]*\})/
const MAX_NAME = 200

function readVariable(source: string, at: number, word: Reading): number {
  if (source[at + 1] === '(') return readCommands(source, at, word)
  const match = VARIABLE.exec(source.slice(at + 1, at + MAX_NAME))
  if (match === null || match[0].length === MAX_NAME - 1) return readOther(source, at, word)
  const [text, short, long, changed = ''] = match
  const start = text === '?' ? '0' : /^\{?PWD\}?$/.test(text) ? '/' : ''
  expand(word, word.isQuoted || start === '0' ? 'one' : 'many', { name: short ?? long ?? changed, start })
  word.value += `$${text}`
  return at + 1 + text.length
}

/** `$(…)` and `<(…)`. The commands in it are judged like all others; what they print is not known, with a few exceptions. */
function readCommands(source: string, at: number, word: Reading): number {
  if (source.startsWith('((', at + 1) || word.skip === undefined) return readOther(source, at, word)
  const end = word.skip(source, at + 2)
  word.isLiteral &&= end !== undefined // the rest is not read again for each substitution around it
  const text = source.slice(at, end)
  const isPath = text.startsWith('<(') || (word.isQuoted && text === '$(pwd)')
  const start = PLAIN_OUTPUT.test(text) ? '0' : isPath ? '/' : ''
  // A command that fails prints nothing, and without quotes there is no word then.
  expand(word, word.isQuoted || start === '/' ? 'one' : start === '0' ? 'optional' : 'many', { start })
  word.value += text
  return at + text.length
}

/** What is no revision is printed as it is, so it must not begin like an option or an absolute path. */
const REVISION = String.raw` [\w@][\w./~^@]*`
/** Substitutions of commands that print a number or a hash, and nothing else. A pipe is single. */
export const PLAIN_OUTPUT = new RegExp(
  String.raw`^\$\((?:nproc|date \+%s|git merge-base(?:${REVISION}){2}|git rev-parse(?: --short)?${REVISION}|(?:[^()'"\`;&\n\\|]+\|)* *wc -[lwcm](?: ?< ?[\w./"$-]+)?)\)$`,
)

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
      if (next === "'" || next === '"') {
        const [text = ''] = ANSI_QUOTES.exec(source.slice(at, at + MAX_NAME)) ?? []
        word.isLiteral &&= text !== '' // `$"…"` is a text to be translated
        word.value += text.slice(2, -1).replace(/\\([^])/g, (_, letter: string) => ESCAPES[letter] ?? letter)
        return at + (text.length || 1)
      }
      break
    case '*':
    case '?':
    case '[':
      expand(word, 'glob')
      break
    case '~': // expands at the start of a word and of a value
      if (at === start && /^[/\s;&|)]?$/.test(next)) expand(word, 'one', { name: '~' })
      else if (at === start || source[at - 1] === '=' || source[at - 1] === ':') word.isLiteral = false
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

/** `$'…'` with the usual escapes. */
const ANSI_QUOTES = /^\$'(?:[^'\\]|\\[nt'"\\])*'/
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t' }
