import { shorten } from '../../../state/text.ts'
import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, Redirection, SyntaxNode } from 'unbash'
import { enterFolder, isMove, relativePath } from './folders.ts'
import { isOwnVariable, isSafeAssignment } from './kinds.ts'
import { PLAIN_OUTPUT, variablesIn } from './literal-word.ts'
import { effectsOf } from './redirections.ts'
import { reservedWords, secondReading, type Span } from './second-reading.ts'
import { isAtHome, isKnown, isUnderstood, textOf, toWord, toWords } from './understand-word.ts'
import type { Known, ParsedWord } from './understand-word.ts'

/** A simple command, or a construct of the grammar with an effect. */
export type ParsedCommand = {
  readonly text: string
  /** The program and its arguments. Empty for an assignment, a redirection or a construct. */
  readonly words: readonly ParsedWord[]
  /** Why no rule can allow it. */
  readonly hazards: readonly string[]
  /** Its here-documents and here-strings. */
  readonly inputs: readonly string[]
  /** The files that its redirections write. */
  readonly writes: readonly string[]
  /** The folders in which it may run, relative to the working directory. */
  readonly folders: readonly string[]
}

/** Every command in a bash text, at any depth. Never throws: `doubt` says why the text was not understood completely. */
export function parseCommands(
  source: string,
  cwd?: string,
): { readonly commands: readonly ParsedCommand[]; readonly doubt: string | undefined } {
  const names = namesIn(source)
  const walk: Walk = {
    commands: [],
    spans: [],
    tests: [],
    names,
    variables: new Set(),
    values: [leadingValues(source, names)],
    folders: ['.'],
    cwd,
    isLooping: false,
    subshells: 0,
    substitutions: 0,
  }
  try {
    visit(parse(source), source, walk)
  } catch {
    return { commands: walk.commands, doubt: 'it is nested too deeply, or has too many commands' } // or the stack ended
  }
  return { commands: walk.commands, doubt: walk.doubt ?? disagreement(source, walk) }
}

type Walk = {
  readonly commands: ParsedCommand[]
  /** The positions of words and of `[[ ]]`, to compare with the second reading. */
  readonly spans: Span[]
  readonly tests: Span[]
  readonly names: ReadonlyMap<string, number>
  /** The variables that the text has set so far. */
  readonly variables: Set<string>
  /** What is known of their values: in a loop, one map for each word of its list. */
  values: readonly Known['values'][]
  readonly cwd: string | undefined
  /** The folders that may be entered so far. */
  folders: readonly string[]
  /** Whether what comes later in the text may run earlier. */
  isLooping: boolean
  /** The numbers of subshells and of command substitutions. */
  subshells: number
  substitutions: number
  doubt?: string
}

/** Each word is read once for each substitution around it. */
const MAX_SUBSTITUTIONS = 50
const MAX_COMMANDS = 1000

function visit(node: SyntaxNode, source: string, walk: Walk): void {
  const inner = node.type === 'Script' ? (node.source ?? source) : source
  const error = node.type === 'Script' ? node.errors?.[0] : undefined
  if (error !== undefined) walk.doubt ??= `it cannot be parsed: ${error.message}`
  const { folders, isLooping, values } = walk
  const text = shorten(source.slice(node.pos, node.end), MAX_TEXT)
  const found = foundAt(node, text, walk).map((each) => ({ ...each, text, folders }))
  walk.commands.push(...found)
  const isSubstitution = node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution'
  if (isSubstitution && node.script === undefined) walk.doubt ??= 'a part of it cannot be parsed'
  if (isSubstitution) walk.substitutions += 1
  if (walk.substitutions > MAX_SUBSTITUTIONS || walk.commands.length > MAX_COMMANDS) throw new RangeError('too many')
  if (node.type === 'Word' || node.type === 'HereDocDelimiter' || node.type === 'Assignment')
    walk.spans.push({ pos: node.pos, end: node.end })
  if (node.type === 'Subshell') walk.subshells += 1
  if (node.type === 'ParameterExpansion' && !/[$`]/.test(node.text.slice(1))) return // its words are parts of one
  walk.isLooping = node.type === 'For' || node.type === 'While' || (isLooping && node.type !== 'Subshell')
  // An assignment is one word.
  const parent = node.type === 'Assignment' && node.value.type === 'Word' ? node.value : node
  forEachChild(parent, (child) => visit(child, inner, walk))
  walk.isLooping = isLooping
  if (node.type === 'Subshell') walk.folders = folders
  if (node.type === 'For') walk.values = values
  // A later command may run in any folder so far, because `cd` may fail.
  for (const { words } of found) if (isMove(words)) walk.folders = enterFolder(walk.folders, words, walk.cwd)
}

type Found = Omit<ParsedCommand, 'text' | 'folders'>
const NOTHING: Found = { words: [], hazards: [], inputs: [], writes: [] }

function foundAt(node: SyntaxNode, text: string, walk: Walk): readonly Found[] {
  const hazard = (why: string): readonly Found[] => [{ ...NOTHING, hazards: [why] }]
  switch (node.type) {
    case 'Command':
      return setVariables(node, walk) ? [] : withValues(walk, (known) => simpleCommand(node, walk, known))
    case 'Redirected': {
      const found = withValues(walk, (known) => ({ ...NOTHING, ...effectsOf(node.redirects, known, walk.folders) }))
      return found.filter(({ hazards, writes }) => hazards.length > 0 || writes.length > 0)
    }
    case 'For': {
      const lists = withValues(walk, (known) => node.wordlist?.flatMap((word) => toWords(word, known)) ?? [UNKNOWN])
      return setLoopVariable(node.name.text, lists.flat(), walk) ? [] : hazard('a for loop sets a variable')
    }
    case 'TestCommand':
      walk.tests.push(node)
      return PLAIN_TEST.test(text) && isKnown(variablesIn(text)!, walk) ? [] : hazard('[[ ]] can evaluate its operands')
    default:
      return CONSTRUCTS.test(node.type) ? hazard(`no rule allows the construct ${node.type}`) : []
  }
}

/** Comparisons of plain words: arithmetic would evaluate its operands, and `-v` a subscript. */
const OPERAND = String.raw`"?[\w./*$?-]+"?`
const NUMBER = String.raw`"?(?:\d+|\$[?#])"?`
const COMPARISON = String.raw`(?:! )?(?:-[a-hkprstuwxzLNOSGn] ${OPERAND}|${OPERAND} (?:==?|!=|=~|-nt|-ot|-ef) ${OPERAND}|${NUMBER} -(?:eq|ne|lt|le|gt|ge) ${NUMBER})`
const PLAIN_TEST = new RegExp(String.raw`^\[\[ ${COMPARISON}(?: (?:&&|\|\|) ${COMPARISON})* \]\]$`)

/** They run commands that are not in the text, or change what a name means. */
const CONSTRUCTS = /^(?:Case|Select|Arithmetic(?:For|Command)|Function|Coproc)$/

/** What is found with each value that variables may have, without what is the same. */
function withValues<T>({ variables, values }: Walk, make: (known: Known) => T): readonly T[] {
  const all = values.map((each) => make({ variables, values: each }))
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()]
}

/** Remembers the variable of a loop. False if one of its words is not known to be harmless. */
function setLoopVariable(name: string, words: readonly ParsedWord[], walk: Walk): boolean {
  const arePlain = words.every((word) => PLAIN.test(textOf(word))) && walk.names.get(name) === 1
  if (arePlain && words.length > 0 && words.length * walk.values.length <= MAX_VALUES)
    walk.values = words.flatMap((word) => walk.values.map((each) => new Map(each).set(name, textOf(word))))
  walk.variables.add(name)
  return words.every((word) => isSafe(name, word, false))
}

const MAX_VALUES = 32
/** Also a pattern of files, if nothing else can be at the start. */
const PLAIN = /^[\w./:@%+-][\w./:@%+*-]{0,99}$/
/** An assignment. After `&&` another one may not run, and with `&` it may be in a subshell. */
const LEADING = /(?<!&&)[ \t]*(\w+)=("?)(\$\([^()"#\n]*\)|[\w%*-:@]*)\2 *(?:[;\n]|&&(?![^]*(?:[^&>]|\\.)&(?![&>])))/gy
const UNKNOWN: ParsedWord = { value: null, loose: '' }

/** The names in a text that are no use of a variable. One that sets a variable is among them. */
function namesIn(source: string): ReadonlyMap<string, number> {
  const names = new Map<string, number>()
  if (source.length > MAX_TEXT) return names // each word would be read with each value
  for (const [name] of source.matchAll(/(?<![$\w]|\w-|\$\{)[A-Za-z_]\w*/g)) names.set(name, (names.get(name) ?? 0) + 1)
  return names
}

/** The variables that the start of a text, and nothing else, sets to a plain word. */
function leadingValues(source: string, names: ReadonlyMap<string, number>): Known['values'] {
  const found = [...source.matchAll(LEADING)].map(([, name = '', , text = '']) => [name, text] as const)
  return new Map(found.filter(([name, text]) => (PLAIN.test(text) || PLAIN_OUTPUT.test(text)) && names.get(name) === 1))
}

/** Whether a variable changes nothing about how programs run. Its value is no pattern of files. */
function isSafe(name: string, word: ParsedWord, isExported: boolean): boolean {
  if (!isExported && isOwnVariable(name)) return isUnderstood(word) && !isAtHome(word)
  return isUnderstood(word) && isSafeAssignment(name, word.loose)
}

/** Remembers the variables that a command sets, if it does nothing else and they are known to be harmless. */
function setVariables({ name, prefix, redirects }: Command, walk: Walk): boolean {
  const assignments = prefix.filter((each) => each.type === 'Assignment')
  if (name !== undefined || redirects.length > 0 || assignments.length === 0) return false
  return assignments.every((each) => {
    const words = withValues(walk, (known) => wordOf(each, known))
    walk.variables.add(each.name)
    return words.every((word) => isSafe(each.name, word, false))
  })
}

/** The word that an assignment sets a variable to. */
function wordOf({ name, text, value }: Assignment, known: Known): ParsedWord {
  return text.startsWith(`${name}=`) && value.type === 'Word' ? toWord(value, known) : UNKNOWN
}

function simpleCommand(node: Command, walk: Walk, known: Known): Found {
  const { name, args, prefix, redirects } = node
  const program = name === undefined ? [] : [toWord(name, { ...known, values: new Map() })]
  const words = [...program, ...args.flatMap((word) => toWords(word, known))]
  const [git, option, folder] = words.map(({ value }) => value)
  if (git === 'git' && option === '-C' && folder) words[2] = { value: relativePath(folder, walk.cwd), loose: folder }
  const isChanged = !prefix.every((each) => {
    if (each.type !== 'Assignment') return true
    const word = wordOf(each, known)
    return (each.name === 'IFS' && name?.text === 'read' && word.value !== null) || isSafe(each.name, word, true)
  })
  const { hazards, writes } = effectsOf(redirects, known, walk.folders)
  for (const { loose } of words) if (name?.text === 'read' && isOwnVariable(loose)) walk.variables.add(loose)
  const isHidden = words.some((word) => known.values.has(/^\w*/.exec(textOf(word))![0])) // `read x\y` sets `xy`
  return {
    words,
    hazards: [
      ...(isChanged || isHidden ? ['an assignment changes how commands run'] : []),
      ...(walk.isLooping && isMove(words) ? ['it changes the folder in a loop'] : []),
      ...hazards,
    ],
    inputs: redirects.flatMap(inputOf),
    writes,
  }
}

function inputOf(redirect: Redirection): readonly string[] {
  if (redirect.type === 'HereDoc') return [redirect.body.text]
  return redirect.type === 'HereString' ? [redirect.target?.value ?? ''] : []
}

/** Before anything is allowed, the parser and the second reading must agree. */
function disagreement(source: string, walk: Walk): string | undefined {
  const isUnclear = walk.commands.some(({ words, hazards }) => hazards.length > 0 || !words.every(isUnderstood))
  if (isUnclear) return undefined // it is not allowed anyway
  const second = secondReading(source)
  if (second === undefined) return 'a second reading of it failed'
  const { words, opening, closing } = second
  const { spans, tests, subshells } = walk
  const parsed = new Set(spans.map(({ pos, end }) => `${pos}:${end}`))
  const left = words.filter(({ pos, end }) => !parsed.delete(`${pos}:${end}`))
  const isSame =
    parsed.size === 0 &&
    left.every((span) => isGrammar(source, span, tests)) &&
    opening === subshells &&
    closing === subshells
  return isSame ? undefined : 'two readings of it differ'
}

/** A reserved word, an operator in `[[ ]]`, or the option of `time`. */
function isGrammar(source: string, { pos, end }: Span, tests: readonly Span[]): boolean {
  const word = source.slice(pos, end)
  if (reservedWords.has(word)) return true
  if (word === '-p' && /(?<![^\s;&|(){}!])time[ \t]+$/.test(source.slice(0, pos))) return true
  return TEST_OPERATOR.test(word) && tests.some((each) => each.pos <= pos && end <= each.end)
}

const TEST_OPERATOR = /^(?:\[\[|\]\]|!|-[a-zA-Z]{1,2}|[=!]?=|=~)$/

export const MAX_TEXT = 2000
