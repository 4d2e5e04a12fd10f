import { shorten } from '../../../state/text.ts'
import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, Redirection, SyntaxNode } from 'unbash'
import { enterFolder, everyFolder, isApart, isMove } from './folders.ts'
import { isOwnVariable, isSafeAssignment } from './kinds.ts'
import { literalWord } from './literal-word.ts'
import { effectsOf } from './redirections.ts'
import { reservedWords, secondReading, type Span } from './second-reading.ts'
import {
  isAtHome,
  isHarmlessTest,
  isUnderstood,
  toWord,
  toWords,
  type Known,
  type ParsedWord,
} from './understand-word.ts'

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

type ParsedText = {
  readonly commands: readonly ParsedCommand[]
  /** Why the text was not understood completely; undefined if it was. */
  readonly doubt: string | undefined
}

/** Every command in a bash text, at any depth. Never throws: `doubt` says what cannot be parsed. */
export function parseCommands(source: string): ParsedText {
  const walk: Walk = {
    commands: [],
    spans: [],
    tests: [],
    variables: new Set(),
    values: [new Map()],
    constants: new Set(),
    folders: ['.'],
    isLooping: false,
    subshells: 0,
    substitutions: 0,
    isPlain: true,
  }
  try {
    const script = parse(source)
    walk.constants = constantsIn(script)
    visit(script, source, walk)
  } catch {
    return { commands: walk.commands, doubt: 'it is nested too deeply' } // the parser ran out of stack
  }
  return { commands: walk.commands, doubt: walk.doubt ?? disagreement(source, walk) }
}

type Walk = {
  readonly commands: ParsedCommand[]
  /** The positions of words and of `[[ ]]`, to compare with the second reading. */
  readonly spans: Span[]
  readonly tests: Span[]
  /** The variables that the text has set so far. */
  readonly variables: Set<string>
  /** The values of those of which they are known: in a loop, one map for each word of its list. */
  values: readonly Known['values'][]
  constants: ReadonlySet<SyntaxNode>
  /** The folders that may be entered so far. */
  folders: readonly string[]
  /** Whether what comes later in the text may run earlier. */
  isLooping: boolean
  /** The numbers of subshells and of command substitutions. */
  subshells: number
  substitutions: number
  doubt?: string
  /** Whether the second reading understands everything in it. */
  isPlain: boolean
}

const MAX_SUBSTITUTIONS = 100

function visit(node: SyntaxNode, source: string, walk: Walk): void {
  const inner = node.type === 'Script' ? (node.source ?? source) : source
  const error = node.type === 'Script' ? node.errors?.[0] : undefined
  if (error !== undefined) walk.doubt ??= `it cannot be parsed: ${error.message}`
  const { folders, isLooping, values } = walk
  const found = foundAt(node, walk).map((each) => ({ ...each, text: cut(source, node), folders }))
  walk.commands.push(...found)
  if (found.some(({ hazards }) => hazards.length > 0)) walk.isPlain = false
  if (isUnparsed(node)) walk.doubt ??= 'a part of it cannot be parsed'
  if (node.type === 'CommandExpansion' && (walk.substitutions += 1) > MAX_SUBSTITUTIONS)
    walk.doubt ??= 'it has too many substitutions'
  if (node.type === 'Word' || node.type === 'HereDocDelimiter' || node.type === 'Assignment')
    walk.spans.push({ pos: node.pos, end: node.end })
  if (node.type === 'Subshell') walk.subshells += 1
  if (node.type === 'ParameterExpansion' && !/[$`]/.test(node.text.slice(1))) return // its words are parts of one
  const changed = walk.values
  walk.isLooping = node.type === 'For' || node.type === 'While' || (isLooping && !isApart(node))
  // An assignment is one word.
  const parent = node.type === 'Assignment' && node.value.type === 'Word' ? node.value : node
  if (node.type === 'AndOr') visitChain(node, inner, walk)
  else
    forEachChild(parent, (child) => {
      // A variable has its value after the assignment, or in the body of the loop.
      if (node.type === 'For') walk.values = child === node.body ? changed : values
      else if (node.type === 'Command') walk.values = values
      visit(child, inner, walk)
    })
  walk.isLooping = isLooping
  if (node.type === 'For' || node.type === 'Command') walk.values = node.type === 'For' ? values : changed
  const moves = found.filter(({ words }) => isMove(words))
  if (moves.length > 0) walk.folders = everyFolder(...moves.map(({ words }) => enterFolder(folders, words)))
  else if (isApart(node)) walk.folders = folders
  // A pipeline may be negated, and a statement may fail.
  else if (/^(?:Pipeline|Statement)$/.test(node.type)) walk.folders = everyFolder(folders, walk.folders)
}

/** After `&&` the command before it has succeeded, so that only its folder counts. After `||` it may not have been run. */
function visitChain(node: Extract<SyntaxNode, { type: 'AndOr' }>, source: string, walk: Walk): void {
  let all = walk.folders
  for (const [index, command] of node.commands.entries()) {
    const [isOr, skipped] = [node.operators[index - 1] === '||', walk.folders]
    if (isOr) walk.folders = all
    visit(command, source, walk)
    all = everyFolder(all, walk.folders)
    if (isOr) walk.folders = everyFolder(skipped, walk.folders)
  }
  walk.folders = all
}

/** Substitutions are parsed on access; without a script parsing failed. */
function isUnparsed(node: SyntaxNode): boolean {
  return (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && node.script === undefined
}

/** The loops and assignments whose variable no other part of a text sets. An assignment must always run, before what follows it. */
function constantsIn(script: Extract<SyntaxNode, { type: 'Script' }>): ReadonlySet<SyntaxNode> {
  const setters = new Map<string, SyntaxNode[]>()
  let isReading = false
  const collect = (node: SyntaxNode): void => {
    const name = node.type === 'Assignment' ? node.name : node.type === 'For' ? node.name.text : undefined
    if (name !== undefined)
      setters
        .set(name, setters.get(name) ?? [])
        .get(name)!
        .push(node)
    if (node.type === 'Command') isReading ||= setsVariables(node)
    forEachChild(node, collect)
  }
  collect(script)
  const first = script.commands
    .filter(({ background }) => background !== true)
    .map(({ command }) => (command.type === 'AndOr' ? command.commands[0]! : command))
  const always = new Set<SyntaxNode>(first.flatMap((command) => (command.type === 'Command' ? command.prefix : [])))
  const single = [...setters.values()].filter(({ length }) => length === 1 && !isReading).map(([node]) => node!)
  return new Set(single.filter((node) => node.type === 'For' || always.has(node)))
}

/** Whether a command may set a variable that is one of its words: `read x`, `command read x`, `printf -v x`. */
function setsVariables({ name, args: [first] }: Command): boolean {
  const program = literalWord(name?.text ?? '')
  if (program === 'command') return !/^-[vV]$/.test(first?.text ?? '')
  return program === 'read' || (program === 'printf' && !/^["']?[%\w]/.test(first?.text ?? ''))
}

type Found = Omit<ParsedCommand, 'text' | 'folders'>
const NOTHING: Found = { words: [], hazards: [], inputs: [], writes: [] }

function foundAt(node: SyntaxNode, walk: Walk): readonly Found[] {
  const hazard = (why: string): readonly Found[] => [{ ...NOTHING, hazards: [why] }]
  const known: Known = { variables: walk.variables, values: new Map() }
  switch (node.type) {
    case 'Command':
      return setVariables(node, walk) ? [] : withValues(walk, (each) => simpleCommand(node, walk, each))
    case 'Redirected': {
      const found = withValues(walk, (each) => ({ ...NOTHING, ...effectsOf(node.redirects, each, walk.folders) }))
      return found.filter(({ hazards, writes }) => hazards.length > 0 || writes.length > 0)
    }
    case 'For':
      return setLoopVariable(node, walk) ? [] : hazard('a for loop sets a variable')
    case 'TestCommand':
      walk.tests.push(node)
      return isHarmlessTest(node.expression, known) ? [] : hazard('[[ ]] can evaluate its operands')
    default: {
      const why = constructs[node.type]
      return why === undefined ? [] : hazard(why)
    }
  }
}

const constructs: { readonly [type in SyntaxNode['type']]?: string } = {
  Case: 'the branches of a case are patterns',
  Select: 'a select loop sets a variable',
  ArithmeticFor: 'arithmetic can run commands',
  ArithmeticCommand: 'arithmetic can run commands',
  Function: 'a function changes what a name means',
  Coproc: 'a coprocess runs beside the command',
}

/** What is found with each value that variables may have, without what is the same. */
function withValues<T>({ variables, values }: Walk, make: (known: Known) => T): readonly T[] {
  const all = values.map((each) => make({ variables, values: each }))
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()]
}

const MAX_VALUES = 32

/** Remembers the variable of a loop. False if its words are not known to be harmless. */
function setLoopVariable(node: Extract<SyntaxNode, { type: 'For' }>, walk: Walk): boolean {
  const name = node.name.text
  const values = walk.values.flatMap((values) => {
    const words = node.wordlist?.flatMap((word) => toWords(word, { variables: walk.variables, values }))
    return (words ?? [UNKNOWN]).map((word) => new Map(values).set(name, word))
  })
  if (!isOwnVariable(name) || !values.every((each) => isHarmlessValue(each.get(name)!))) return false
  walk.variables.add(name)
  if (walk.constants.has(node) && values.length > 0 && values.length <= MAX_VALUES) walk.values = values
  return true
}

const UNKNOWN: ParsedWord = { value: null, loose: '' }

function isHarmlessValue(word: ParsedWord): boolean {
  return isUnderstood(word) && !isAtHome(word)
}

/** Remembers the variables that a command sets, if it does nothing else. */
function setVariables({ name, prefix, redirects }: Command, walk: Walk): boolean {
  const assignments = prefix.filter((each) => each.type === 'Assignment')
  const isOther = name !== undefined || redirects.length > 0 || assignments.length === 0
  if (isOther || !withValues(walk, (known) => assignments.every((each) => isSafe(each, known, name))).every(Boolean))
    return false
  for (const each of assignments) {
    walk.variables.add(each.name)
    if (walk.constants.has(each) && each.value.type === 'Word') {
      const { value } = each
      walk.values = walk.values.map((values) => {
        return new Map(values).set(each.name, toWord(value, { variables: walk.variables, values }))
      })
    }
  }
  return true
}

/** Whether an assignment, before the command with a name or alone, changes nothing about how programs run. */
function isSafe({ name, value, append, index }: Assignment, known: Known, command: Command['name']): boolean {
  if (append === true || index !== undefined || value.type !== 'Word') return false
  const word = toWord(value, known)
  if (command === undefined && isOwnVariable(name)) return isHarmlessValue(word)
  if (name === 'IFS' && command?.text === 'read') return word.value !== null
  return isUnderstood(word) && isSafeAssignment(name, word.loose) // a value is no pattern of files
}

function simpleCommand(node: Command, walk: Walk, known: Known): Found {
  const { name, args, prefix, redirects } = node
  const program = name === undefined ? [] : [toWord(name, { ...known, values: new Map() })]
  const words = [...program, ...args.flatMap((word) => toWords(word, known))]
  const isChanged = !prefix.every((each) => each.type !== 'Assignment' || isSafe(each, known, name))
  const { hazards, writes } = effectsOf(redirects, known, walk.folders)
  if (name?.text === 'read') for (const { value } of words) walk.variables.add(value ?? '')
  return {
    words,
    hazards: [
      ...(isChanged ? ['an assignment changes how commands run'] : []),
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
  const isLiteral = walk.commands.every(({ words }) => words.every(isUnderstood))
  if (!walk.isPlain || !isLiteral) return undefined // it is not allowed anyway
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

function cut(source: string, { pos, end }: Span): string {
  return shorten(source.slice(pos, end), MAX_TEXT)
}
