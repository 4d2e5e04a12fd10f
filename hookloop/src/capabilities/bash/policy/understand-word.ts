import type { Assignment, TestExpression, Word } from 'unbash'
import { isOwnVariable, kinds } from './kinds.ts'
import type { Expansion } from './literal-word.ts'
import { wholeWord } from './second-reading.ts'
import { expandBraces, type Fact } from './walk-facts.ts'

/** A word of a command. */
export type ParsedWord = {
  /** The word after quote removal; null if bash would expand it. */
  readonly value: string | null
  /** The word without quotes and with its expansions as written. Used to find denied commands. */
  readonly loose: string
  /** How bash expands it, if only to patterns of files, variables that are known, and the output of commands. */
  readonly expansion?: Expansion
  /** Whether it expands to a path below the working directory. */
  readonly isBelow?: boolean
  /** Whether it expands to a relative path. */
  readonly isRelative?: boolean
}

/** What is known of the variables of a text. */
export type Known = {
  /** The variables that the text has set so far. */
  readonly variables: ReadonlySet<string>
  readonly facts: ReadonlyMap<string, Fact>
}

/** Variables that reveal nothing. */
const harmlessVariables: ReadonlySet<string> = new Set(
  '? # $ ~ HOME PWD OLDPWD PATH USER LOGNAME SHELL LANG TERM TMPDIR HOSTNAME CI NODE_ENV PORT OSTYPE UID PPID RANDOM SECONDS'.split(
    ' ',
  ),
)

/** The words that a word becomes, which are several if it has a list in braces. */
export function toWords(node: Word | Assignment, known: Known): readonly ParsedWord[] {
  const isList = node.type === 'Word' && node.parts?.some(({ type }) => type === 'BraceExpansion') === true
  const texts = isList ? expandBraces(node.text) : undefined
  const words = texts?.map((text) => toWord({ ...node, text, value: text } as Word, known))
  return words?.every(isUnderstood) === true ? words : [toWord(node, known)]
}

/** A word is understood if both readings agree on it, and every variable in it is known. After some builtins the parser returns assignments. */
export function toWord(node: Word | Assignment, known: Known): ParsedWord {
  const read = wholeWord(node.text)
  const loose = node.type === 'Word' ? node.value : (read?.text ?? node.text)
  if (read === undefined || read.text !== loose) return { value: null, loose }
  if (read.expansion === undefined || !isKnown(read.expansion, known)) return { value: read.value, loose }
  const isSet = (name: string, fact: keyof Fact): boolean =>
    known.facts.get(name)?.[fact] === true && known.variables.has(name)
  // A plain value is not split, as if it were in quotes.
  const isPlain = UNQUOTED.test(node.text) && read.expansion.variables.every((name) => isSet(name, 'isPlain'))
  const text = isPlain ? `"${node.text}"` : node.text
  const quoted = isPlain ? wholeWord(text)?.expansion : undefined
  // Without quotes, a variable that is not set is no word.
  const isOne = quoted?.isOne === true && node.text.replace(/\$(?:\w+|\{[^}]*\})/g, '') !== ''
  const expansion = quoted === undefined ? read.expansion : { ...quoted, isOne }
  if (MENTIONS_HOME.test(text)) return { value: null, loose, expansion: { ...expansion, variables: ['~'] } }
  const [, short, long, rest = ''] = FIRST_VARIABLE.exec(text) ?? []
  const name = short ?? long ?? ''
  const isStart = isSet(name, 'isBelow') || isSet(name, 'isPlain')
  // The assignment may not have been run, so the value may also be empty.
  const prefix = isStart ? (rest === '' ? './' : '/') : expansion.prefix
  const areBelow = expansion.variables.length > 0 && expansion.variables.every((each) => isSet(each, 'isBelow'))
  const path = text
    .replace(/"/g, '')
    .replace(/^--[\w-]+=/, '')
    .replace(VARIABLES, (_, at) => (at === 0 ? '' : 'x'))
  const isBelow =
    areBelow &&
    expansion.isOne &&
    !JOINS_DOTS.test(text) &&
    ((isStart && rest === '') || (isBelowPath(path) && !path.includes('*')))
  const isRelative = rest === '' && isSet(name, 'isRelative')
  return { value: null, loose, expansion: { ...expansion, prefix }, isBelow, isRelative }
}

const UNQUOTED = /^[\w./:@%+,=${}-]+$/
const VARIABLES = /\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})/g

/** Variables with `./` or `/.` in their values can be joined to `..`. */
const JOINS_DOTS = /\.\$|\$(?:\w+|\{\w+\})(?:\$|\.(?:[/"$]|$))/

/** A variable in double quotes, alone or as the folder of a path. */
const FIRST_VARIABLE = /^"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})((?:\/[^]*)?)"$/

/** A substitution whose output may be a path in the home folder. */
const MENTIONS_HOME = /[$<]\([^]*(?:(?<!\w)~|HOME|OLDPWD|\bcd\b)/

export function isKnown({ variables }: Expansion, known: Known): boolean {
  return variables.every((name) => {
    if (!name.startsWith('+')) return harmlessVariables.has(name) || known.variables.has(name)
    const own = name.slice(1)
    if (/^(?:SECONDS|RANDOM|UID|PPID)$/.test(own)) return true
    return isOwnVariable(own) && known.variables.has(own) && known.facts.get(own)?.isNumber === true
  })
}

/** Whether a text is a path, or a pattern of paths, that begins with a name below the working directory. */
export function isBelowPath(text: string): boolean {
  const path = text.replace(/^"([^"]*)"$/, '$1')
  return /^(?:\w|\.\/)[\w./*?@-]*$/.test(path) && kinds['below']!(path) && !DOT_PATTERN.test(path)
}

/** A pattern that may match `..`. */
const DOT_PATTERN = /(?:^|\/)\.{1,2}[*?]/

/** Whether a word may be a path in the home folder, where keys are. */
export function isAtHome({ expansion }: ParsedWord): boolean {
  return expansion?.variables.some((name) => name === '~' || name === 'HOME' || name === 'OLDPWD') === true
}

export function isUnderstood({ value, expansion }: ParsedWord): boolean {
  return value !== null || expansion !== undefined
}

export function isPattern({ value, expansion }: ParsedWord): boolean {
  return value !== null || expansion?.variables.length === 0
}

/** Whether `[[ ]]` only compares: arithmetic would evaluate its operands, and `-v` a subscript. */
export function isHarmlessTest(test: TestExpression, known: Known): boolean {
  switch (test.type) {
    case 'TestUnary':
      return /^-[a-hkprstuwxzLNOSGn]$/.test(test.operator) && isUnderstood(toWord(test.operand, known))
    case 'TestBinary': {
      const words = [test.left, test.right]
      if (/^-(?:eq|ne|lt|le|gt|ge)$/.test(test.operator))
        return words.every(({ text }) => /^(?:\d+|"?\$[?#]"?)$/.test(text))
      return (
        /^(?:==?|!=|=~|[<>]|-nt|-ot|-ef)$/.test(test.operator) &&
        words.every((word) => isUnderstood(toWord(word, known)))
      )
    }
    case 'TestLogical':
      return test.operands.every((each) => isHarmlessTest(each, known))
    case 'TestNot':
      return isHarmlessTest(test.operand, known)
    case 'TestGroup':
      return false
    default:
      return test satisfies never
  }
}
