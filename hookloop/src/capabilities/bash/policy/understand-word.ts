import type { Assignment, Word } from 'unbash'
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
  /** The variables that it has set so far. */
  readonly variables: ReadonlySet<string>
  /** Those that can only be one plain word. */
  readonly values: ReadonlyMap<string, string>
}

/** Variables that reveal nothing. */
const harmlessVariables: ReadonlySet<string> = new Set(
  `? ! # $ ~ HOME PWD OLDPWD PATH USER SHELL LANG TERM TMPDIR HOSTNAME CI NODE_ENV PORT OSTYPE SECONDS`.split(' '),
)

export function isKnown(variables: readonly string[], known: Pick<Known, 'variables'>): boolean {
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
  if (node.type === 'Word' && word.loose !== node.value) return { value: null, loose: node.value }
  const valueOf = (name: string) => (known.variables.has(name) ? known.values.get(name) : undefined)
  const filled = node.text.replace(VARIABLES, (all, short, long) => valueOf(short ?? long) ?? all)
  if (filled === node.text || /['\\]/.test(node.text)) return word
  if (!filled.includes('*')) return readText(filled, known)
  // The name of a file is one word in quotes, and may become several words otherwise.
  const { expansion, ...pattern } = readText(/^"([^"]*)"$/.exec(filled)?.[1] ?? '', known)
  return expansion === undefined ? word : { ...pattern, expansion: { ...expansion, isOne: true } }
}

function readText(text: string, known: Known): ParsedWord {
  const { value, text: loose, expansion } = completeWord(text, skipInto()) ?? { value: null, text }
  if (expansion === undefined || !isKnown(expansion.variables, known)) return { value, loose }
  const [, ...commands] = text.split(/[$<]\(/)
  const variables = commands.some((each) => HOME.test(each)) ? ['~'] : expansion.variables
  return { value, loose, expansion: { ...expansion, variables } }
}

const VARIABLES = /(?<!\$)\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g

/** A substitution whose output may be a path in the home folder. */
const HOME = /(?<!\w)~|HOME|OLDPWD|\bcd\b/

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

export function textOf({ value, loose }: ParsedWord): string {
  return value ?? loose
}
