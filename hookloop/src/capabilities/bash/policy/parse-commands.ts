import { shorten } from '../../../state/text.ts'
import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, Redirection, SyntaxNode } from 'unbash'
import { enterFolder, everyFolder, isApart, isLoop, placeOf, ELSEWHERE } from './folders.ts'
import { isBuiltin } from './builtins.ts'
import { grammarOf } from './grammar.ts'
import { isOwnVariable, isSafeAssignment } from './kinds.ts'
import { effectsOf } from './redirections.ts'
import { reservedWords, secondReading, type SecondReading, type Span } from './second-reading.ts'
import {
  isAtHome,
  isBelowPath,
  isHarmlessTest,
  isPattern,
  isUnderstood,
  toWord,
  toWords,
  type ParsedWord,
} from './understand-word.ts'
import { factsIn, type Fact } from './walk-facts.ts'

/** A simple command, or a construct of the grammar with an effect. */
export type ParsedCommand = {
  readonly text: string
  /** The program and its arguments. Empty for an assignment, a redirection or a construct. */
  readonly words: readonly ParsedWord[]
  /** Why no rule can allow it. */
  readonly hazards: readonly string[]
  /** Its here-documents and here-strings. */
  readonly inputs?: readonly string[]
  /** The files that its redirections write. */
  readonly writes?: readonly string[]
  /** The folders in which it may run, relative to the working directory. */
  readonly folders?: readonly string[]
  /** Whether it calls a function that the text defines. */
  readonly isCall?: boolean
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
    sums: [],
    variables: new Set(),
    facts: new Map(),
    folders: ['.'],
    defined: new Set(),
    functions: new Set(),
    subshells: 0,
    branches: 0,
    pairs: 0,
    substitutions: 0,
    isPlain: true,
  }
  try {
    const script = parse(source)
    walk.facts = factsIn(script, isBelowPath)
    for (const { command, background } of script.commands) {
      if (command.type !== 'Function' || background === true) break
      walk.defined.add(command)
    }
    visit(script, source, walk)
  } catch {
    return { commands: walk.commands, doubt: 'it is nested too deeply' } // the parser ran out of stack
  }
  return { commands: walk.commands, doubt: walk.doubt ?? disagreement(source, walk) }
}

type Walk = {
  readonly commands: ParsedCommand[]
  /** The positions of words, to compare with the second reading. */
  readonly spans: Span[]
  /** The positions of `[[ ]]`, and of arithmetic. */
  readonly tests: Span[]
  readonly sums: Span[]
  /** The variables that the text has set so far, and what is known of all of them. */
  readonly variables: Set<string>
  facts: ReadonlyMap<string, Fact>
  /** The folders that may be entered so far. */
  folders: readonly string[]
  /** The functions at the start of the text. Later ones may not be defined: an error such as `$((1/0))` skips the rest of its line. */
  readonly defined: Set<SyntaxNode>
  /** The names of those that the text has defined so far. */
  readonly functions: Set<string>
  /** The numbers of subshells, of other pairs of parentheses, of case branches and of command substitutions. */
  subshells: number
  pairs: number
  substitutions: number
  branches: number
  doubt?: string
  /** Whether the second reading understands everything in it. */
  isPlain: boolean
}

function visit(node: SyntaxNode, source: string, walk: Walk): void {
  const inner = node.type === 'Script' ? (node.source ?? source) : source
  const error = node.type === 'Script' ? node.errors?.[0] : undefined
  if (error !== undefined) walk.doubt ??= `it cannot be parsed: ${error.message}`
  const [before, first] = [walk.folders, walk.commands.length]
  const found = foundAt(node, source, walk)
  if (found !== undefined) {
    walk.commands.push({ ...found, folders: before })
    if (found.hazards.length > 0) walk.isPlain = false
  }
  if (isUnparsed(node)) walk.doubt ??= 'a part of it cannot be parsed'
  if (node.type === 'CommandExpansion' && (walk.substitutions += 1) > MAX_SUBSTITUTIONS)
    walk.doubt ??= 'it has too many substitutions'
  if (node.type === 'Word' || node.type === 'HereDocDelimiter' || node.type === 'Assignment') {
    const isArray = node.type === 'Assignment' && node.value.type === 'ArrayValue'
    walk.spans.push({ pos: node.pos, end: isArray ? node.value.pos : node.end })
    if (isArray) walk.pairs += 1
  }
  if (node.type === 'Subshell') walk.subshells += 1
  if (node.type === 'CaseItem') walk.branches += 1
  if (node.type === 'ParameterExpansion' && !/[$`]/.test(node.text.slice(1))) return // its words are parts of one
  // An assignment is one word.
  const parent = node.type === 'Assignment' && node.value.type === 'Word' ? node.value : node
  if (node.type === 'AndOr') visitChain(node, inner, walk)
  else if (node.type === 'Function') visitFunction(node, inner, walk)
  else forEachChild(parent, (child) => visit(child, inner, walk))
  if (node.type === 'Command') walk.folders = enterFolder(walk.folders, found?.words ?? [])
  else if (isApart(node)) walk.folders = before
  else if (node.type === 'Pipeline') walk.folders = everyFolder(before, walk.folders) // it may be negated
  else if (isLoop(node) && walk.folders !== before) {
    walk.folders = ELSEWHERE
    for (const [index, each] of walk.commands.entries()) if (index >= first) walk.commands[index] = inAnyFolder(each)
  } else if (node.type === 'Statement') walk.folders = everyFolder(before, walk.folders)
}

function inAnyFolder(command: ParsedCommand): ParsedCommand {
  const isJudgedElsewhere = (command.writes?.length ?? 0) > 0 || command.isCall === true
  const hazards = isJudgedElsewhere ? ['it may be run again after cd'] : []
  return { ...command, hazards: [...command.hazards, ...hazards], folders: ELSEWHERE }
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

/** In a function, its arguments are variables whose values are not known. */
function visitFunction(node: Extract<SyntaxNode, { type: 'Function' }>, source: string, walk: Walk): void {
  for (const name of ARGUMENTS) walk.variables.add(name)
  forEachChild(node, (child) => visit(child, source, walk))
  for (const name of ARGUMENTS) walk.variables.delete(name)
  if (/^\s*\(\s*\)/.test(source.slice(node.name.end))) walk.pairs += 1
  walk.functions.add(node.name.text)
}

const ARGUMENTS = '1 2 3 4 5 6 7 8 9 @ *'.split(' ')

/** Substitutions are parsed on access; without a script parsing failed. */
function isUnparsed(node: SyntaxNode): boolean {
  return (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && node.script === undefined
}

function foundAt(node: SyntaxNode, source: string, walk: Walk): ParsedCommand | undefined {
  const hazardous = (why: string): ParsedCommand => ({ text: cut(source, node), words: [], hazards: [why] })
  switch (node.type) {
    case 'Command':
      return simpleCommand(node, source, walk)
    case 'Redirected': {
      const { hazards, writes } = effectsOf(node.redirects, walk)
      const isHarmless = hazards.length === 0 && writes.length === 0
      return isHarmless ? undefined : { text: cut(source, node), words: [], hazards, writes }
    }
    case 'For': {
      const words = node.wordlist?.flatMap((word) => toWords(word, walk))
      const isKnown = words?.every((word) => isUnderstood(word) && !isAtHome(word)) === true
      if (!isKnown || !isOwnVariable(node.name.text)) return hazardous('a for loop sets a variable')
      walk.variables.add(node.name.text)
      return undefined
    }
    case 'Function': {
      const isOwn = /^[a-z][a-z0-9_]*$/.test(node.name.text) && !reservedWords.has(node.name.text)
      const isKnown = isOwn && walk.defined.has(node) && grammarOf(node.name.text) === undefined
      return isKnown && !isBuiltin(node.name.text) ? undefined : hazardous('a function changes what a name means')
    }
    case 'Case':
      return isUnderstoodCase(node, walk) ? undefined : hazardous('a case that depends on an expansion')
    case 'TestCommand':
      walk.tests.push(node)
      return isHarmlessTest(node.expression, walk) ? undefined : hazardous('[[ ]] can evaluate its operands')
    case 'ArithmeticCommand':
    case 'ArithmeticFor': {
      const [sum = '', names = ''] = SUM.exec(source.slice(node.pos, node.end)) ?? []
      const own = names.match(/\b[A-Za-z_]\w*/g) ?? []
      const isNumeric = own.every((name) => isOwnVariable(name) && walk.facts.get(name)?.isNumber === true)
      if (sum === '' || !isNumeric) return hazardous('arithmetic can run commands')
      const pos = node.pos + sum.indexOf('((')
      walk.sums.push({ pos, end: node.pos + sum.length })
      for (const name of own) walk.variables.add(name)
      return undefined
    }
    default: {
      const hazard = constructs[node.type]
      return hazard === undefined ? undefined : hazardous(hazard)
    }
  }
}

const constructs: { readonly [type in SyntaxNode['type']]?: string } = {
  Select: 'a select loop sets a variable',
  Coproc: 'a coprocess runs beside the command',
}

const MAX_SUBSTITUTIONS = 100

/** Arithmetic without subscripts, quotes and expansions. */
const SUM = /^(?:for\s*)?\(\(([\w\s+\-*/%<>=!&|?:,;]*)\)\)(?!\))/

function simpleCommand(node: Command, source: string, walk: Walk): ParsedCommand | undefined {
  const assignments = node.prefix.filter((each) => each.type === 'Assignment')
  const isSafe = (each: Assignment): boolean => {
    if (each.append === true || each.index !== undefined) return false
    if (each.value.type === 'ArrayValue') {
      const elements = each.value.elements.flatMap((element) => toWords(element, walk))
      // `[x]=y` evaluates its index.
      const isKnown = elements.every((each) => isUnderstood(each) && !isAtHome(each) && !each.loose.startsWith('['))
      return node.name === undefined && isOwnVariable(each.name) && isKnown
    }
    const word = toWord(each.value, walk)
    const text = isPattern(word) ? (word.value ?? word.loose) : null // a value is no pattern of files
    if (node.name === undefined && isOwnVariable(each.name)) return isUnderstood(word) && !isAtHome(word)
    if (each.name === 'IFS' && node.name?.text === 'read') return word.value !== null
    return text !== null && isSafeAssignment(each.name, text)
  }
  const { hazards, writes } = effectsOf(node.redirects, walk)
  const isChanged = !assignments.every(isSafe)
  if (node.name === undefined && assignments.length > 0 && !isChanged && node.redirects.length === 0) {
    for (const { name } of assignments) walk.variables.add(name)
    return undefined
  }
  const words =
    node.name === undefined ? [] : [toWord(node.name, walk), ...node.args.flatMap((word) => toWords(word, walk))]
  const isFunction = walk.functions.has(node.name?.text ?? '')
  const isMoved = isFunction && placeOf(walk.folders) !== 'same'
  if (node.name?.text === 'read') for (const { value } of words) walk.variables.add(value ?? '')
  return {
    text: cut(source, node),
    words,
    hazards: [
      ...(isChanged ? ['an assignment changes how commands run'] : []),
      ...(isMoved ? ['it calls a function after cd'] : []),
      ...hazards,
    ],
    inputs: node.redirects.flatMap(inputOf),
    writes,
    isCall: isFunction && !walk.variables.has('@'),
  }
}

function inputOf(redirect: Redirection): readonly string[] {
  if (redirect.type === 'HereDoc') return [redirect.body.text]
  return redirect.type === 'HereString' ? [redirect.target?.value ?? ''] : []
}

function isUnderstoodCase(node: Extract<SyntaxNode, { type: 'Case' }>, walk: Walk): boolean {
  const patterns = node.items.flatMap(({ pattern }) => pattern).map((word) => toWord(word, walk))
  return isUnderstood(toWord(node.word, walk)) && patterns.every(isPattern)
}

/** Before anything is allowed, the parser and the second reading must agree. */
function disagreement(source: string, walk: Walk): string | undefined {
  const isLiteral = walk.commands.every(({ words }) => words.every(isUnderstood))
  if (!walk.isPlain || !isLiteral) return undefined // it is not allowed anyway
  const second = secondReading(source)
  if (second === undefined) return 'a second reading of it failed'
  return isSame(source, walk, second) ? undefined : 'two readings of it differ'
}

function isSame(
  source: string,
  { spans, tests, sums, subshells, branches, pairs }: Walk,
  second: SecondReading,
): boolean {
  const parsed = new Set(spans.map(({ pos, end }) => `${pos}:${end}`))
  const left = second.words.filter(({ pos, end }) => !parsed.delete(`${pos}:${end}`))
  const isIn = (spans: readonly Span[], { pos, end }: Span): boolean =>
    spans.some((each) => each.pos <= pos && end <= each.end)
  const isOperator = (span: Span): boolean => isIn(tests, span) && TEST_OPERATOR.test(source.slice(span.pos, span.end))
  const others = 2 * sums.length + pairs
  const [opening, closing] = [second.opening - others, second.closing - others]
  return (
    parsed.size === 0 &&
    left.every((span) => isGrammar(source, span) || isOperator(span) || isIn(sums, span)) &&
    closing === subshells + branches &&
    opening >= subshells &&
    opening <= closing
  )
}

const TEST_OPERATOR = /^(?:\[\[|\]\]|!|-[a-zA-Z]{1,2}|[=!]?=|=~)$/

/** A reserved word, or the option of `time`. */
function isGrammar(source: string, { pos, end }: Span): boolean {
  const word = source.slice(pos, end)
  return reservedWords.has(word) || (word === '-p' && /(?<![^\s;&|(){}!])time[ \t]+$/.test(source.slice(0, pos)))
}

export const MAX_TEXT = 2000

function cut(source: string, { pos, end }: Span): string {
  return shorten(source.slice(pos, end), MAX_TEXT)
}
