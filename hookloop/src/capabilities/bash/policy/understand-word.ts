import type { Assignment, TestExpression, Word } from 'unbash'
import { completeWord, type Expansion } from './literal-word.ts'
import { skipInto } from './second-reading.ts'

/** A word of a command. */
export type ParsedWord = {
  /** The word after quote removal; null if bash would expand it. */
  readonly value: string | null
  /** The word without quotes and with its expansions as written. Used to find denied commands. */
  readonly loose: string
  /** How bash expands it, if only to patterns of files, variables that are known, and the output of commands. */
  readonly expansion?: Expansion
}

/** What is known of the variables of a text. */
export type Known = {
  /** The variables that the text has set so far. */
  readonly variables: ReadonlySet<string>
  /** The words that those are set to of which that is known. */
  readonly values: ReadonlyMap<string, ParsedWord>
}

/** Variables that reveal nothing. */
const harmlessVariables: ReadonlySet<string> = new Set(
  '? ! # $ ~ HOME PWD OLDPWD PATH USER LOGNAME SHELL LANG TERM TMPDIR HOSTNAME CI NODE_ENV PORT OSTYPE UID PPID RANDOM SECONDS'.split(
    ' ',
  ),
)

export function isKnown({ variables }: Expansion, known: Known): boolean {
  return variables.every((name) => harmlessVariables.has(name) || known.variables.has(name))
}

/** The words that a word becomes, which are several if it has a list in braces. */
export function toWords(node: Word | Assignment, known: Known): readonly ParsedWord[] {
  const isList = node.type === 'Word' && node.parts?.some(({ type }) => type === 'BraceExpansion') === true
  const words = isList ? expandBraces(node.text)?.map((text) => readText(text, known)) : undefined
  return words?.every(isUnderstood) === true ? words : [toWord(node, known)]
}

/** A word is understood if both readings agree on it, and every variable in it is known. After some builtins the parser returns assignments. */
export function toWord(node: Word | Assignment, known: Known): ParsedWord {
  const word = readText(node.text, known)
  return node.type === 'Word' && word.loose !== node.value
    ? { value: null, loose: node.value }
    : withValues(node.text, word, known)
}

function readText(text: string, known: Known): ParsedWord {
  const { value, text: loose, expansion } = completeWord(text, skipInto()) ?? { value: null, text }
  if (expansion === undefined || !isKnown(expansion, known)) return { value, loose }
  const variables = MENTIONS_HOME.test(text) ? ['~'] : expansion.variables
  return { value, loose, expansion: { ...expansion, variables } }
}

/** A substitution whose output may be a path in the home folder. */
const MENTIONS_HOME = /[$<]\([^]*(?:(?<!\w)~|HOME|OLDPWD|\bcd\b)/

/** A word with variables whose values are known is what bash makes of it. */
function withValues(text: string, word: ParsedWord, { values, variables }: Known): ParsedWord {
  const [, short, long = ''] = WHOLE.exec(text) ?? []
  const whole = values.get(short ?? long)
  if (whole?.expansion !== undefined) return { ...whole, expansion: { ...whole.expansion, isOne: true } }
  if (whole !== undefined) return whole
  const filled = PLAIN_PARTS.test(text)
    ? text.replace(VARIABLES, (variable, short?: string, long = '') => {
        const { value, loose = '', expansion } = values.get(short ?? long) ?? {}
        return PLAIN_VALUE.test(value ?? '') || (expansion?.prefix === '0' && loose.startsWith('$(')) ? loose : variable
      })
    : text
  return filled === text ? word : readText(filled, { variables, values })
}

const VARIABLES = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g
/** A variable in quotes. */
const WHOLE = new RegExp(`^"${VARIABLES.source}"$`)
/** A word without other quotes and expansions. */
const PLAIN_PARTS = /^[\w./:@%+,=${}" -]*$/
/** Bash does not split or expand such a value. */
const PLAIN_VALUE = /^[\w./:@%+-]+$/

/**
 * The words that a word with lists or ranges in braces becomes. Undefined if it has none, or if it has quotes, other expansions, nested
 * braces or too many words.
 */
function expandBraces(text: string): readonly string[] | undefined {
  const [whole, before = '', list = '', after = ''] = BRACES.exec(text) ?? []
  const items = list.includes(',') ? list.split(',') : rangeOf(list)
  const rest = /[{}]/.test(after) ? expandBraces(after) : [after]
  if (whole === undefined || items === undefined || rest === undefined) return undefined
  if (items.length * rest.length > MAX_WORDS) return undefined
  return items.flatMap((item) => rest.map((end) => before + item + end)).filter((word) => word !== '')
}

const BRACES = /^([^{}'"\\$`]*)\{([^{}'"\\$`]*)\}([^'"\\$`]*)$/
const MAX_WORDS = 100

function rangeOf(text: string): readonly string[] | undefined {
  const [, first, last] = /^(0|[1-9]\d{0,5})\.\.(0|[1-9]\d{0,5})$/.exec(text) ?? []
  const [from, to] = [Number(first), Number(last)]
  const length = Math.abs(to - from) + 1
  if (Number.isNaN(length) || length > MAX_WORDS) return undefined
  return Array.from({ length }, (_, i) => String(to > from ? from + i : from - i))
}

/** Whether a word may be a path in the home folder, where keys are. */
export function isAtHome({ expansion }: ParsedWord): boolean {
  return expansion?.variables.some((name) => name === '~' || name === 'HOME' || name === 'OLDPWD') === true
}

export function isUnderstood({ value, expansion }: ParsedWord): boolean {
  return value !== null || expansion !== undefined
}

/** Whether `[[ ]]` only compares: arithmetic would evaluate its operands, and `-v` a subscript. */
export function isHarmlessTest(test: TestExpression, known: Known): boolean {
  const areUnderstood = (...words: readonly Word[]): boolean => words.every((word) => isUnderstood(toWord(word, known)))
  switch (test.type) {
    case 'TestUnary':
      return /^-[a-hkprstuwxzLNOSGn]$/.test(test.operator) && areUnderstood(test.operand)
    case 'TestBinary':
      if (/^-(?:eq|ne|lt|le|gt|ge)$/.test(test.operator))
        return [test.left, test.right].every(({ text }) => /^(?:\d+|"?\$[?#]"?)$/.test(text))
      return /^(?:==?|!=|=~|[<>]|-nt|-ot|-ef)$/.test(test.operator) && areUnderstood(test.left, test.right)
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
