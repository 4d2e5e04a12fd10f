import { shorten } from '../../../state/text.ts'
import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, Redirection, SyntaxNode, Word } from 'unbash'
import { isDataFile, isSafeAssignment } from './kinds.ts'
import { completeWord, literalWord, type Expansion } from './literal-word.ts'
import { isPlainText, reservedWords, secondReading, type SecondReading, type Span } from './second-reading.ts'

/** A word of a command. */
export type ParsedWord = {
  /** The word after quote removal; null if bash would expand it. */
  readonly value: string | null
  /** The word without quotes and with its expansions as written. Used to find denied commands. */
  readonly loose: string
  /** How bash expands it, if only to patterns of files and to variables that are known. */
  readonly expansion?: Expansion
}

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
}

type ParsedText = {
  readonly commands: readonly ParsedCommand[]
  /** Why the text was not understood completely; undefined if it was. */
  readonly doubt: string | undefined
}

/** Every command in a bash text, at any depth. Never throws: `doubt` says what cannot be parsed. */
export function parseCommands(source: string): ParsedText {
  const walk: Walk = { commands: [], spans: [], variables: new Set(), subshells: 0, branches: 0, isPlain: true }
  try {
    visit(parse(source), source, walk)
  } catch {
    return { commands: walk.commands, doubt: 'it is nested too deeply' } // the parser ran out of stack
  }
  return { commands: walk.commands, doubt: walk.doubt ?? disagreement(source, walk) }
}

type Walk = {
  readonly commands: ParsedCommand[]
  /** The positions of words, to compare with the second reading. */
  readonly spans: Span[]
  /** The variables that the text has set so far. */
  readonly variables: Set<string>
  /** The numbers of subshells and of case branches. */
  subshells: number
  branches: number
  doubt?: string
  /** Whether the second reading understands everything in it. */
  isPlain: boolean
}

function visit(node: SyntaxNode, source: string, walk: Walk): void {
  const inner = node.type === 'Script' ? (node.source ?? source) : source
  const error = node.type === 'Script' ? node.errors?.[0] : undefined
  if (error !== undefined) walk.doubt ??= `it cannot be parsed: ${error.message}`
  const found = foundAt(node, source, walk)
  if (found !== undefined) {
    walk.commands.push(found)
    if (found.hazards.length > 0) walk.isPlain = false
  }
  if (isUnparsed(node)) walk.doubt ??= 'a part of it cannot be parsed'
  if (node.type === 'Word' || node.type === 'HereDocDelimiter') walk.spans.push({ pos: node.pos, end: node.end })
  if (node.type === 'Subshell') walk.subshells += 1
  if (node.type === 'CaseItem') walk.branches += 1
  if (node.type === 'Assignment') {
    walk.spans.push({ pos: node.pos, end: node.end })
    if (valueOf(node) !== null) return // it has no commands, and its words are parts of one
  }
  forEachChild(node, (child) => visit(child, inner, walk))
}

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
      const { hazards, writes } = effectsOf(node.redirects)
      const isHarmless = hazards.length === 0 && writes.length === 0
      return isHarmless ? undefined : { text: cut(source, node), words: [], hazards, writes }
    }
    case 'For': {
      const words = node.wordlist?.map((word) => toWord(word, walk))
      const isKnown = words?.every((word) => isUnderstood(word) && !isAtHome(word)) === true
      if (!isKnown || !OWN_VARIABLE.test(node.name.text)) return hazardous('a for loop sets a variable')
      walk.variables.add(node.name.text)
      return undefined
    }
    case 'Case':
      return isLiteralCase(node) ? undefined : hazardous('a case that depends on an expansion')
    default: {
      const hazard = constructs[node.type]
      return hazard === undefined ? undefined : hazardous(hazard)
    }
  }
}

const constructs: { readonly [type in SyntaxNode['type']]?: string } = {
  Select: 'a select loop sets a variable',
  ArithmeticFor: 'arithmetic can run commands',
  Function: 'a function changes what a name means',
  Coproc: 'a coprocess runs beside the command',
  TestCommand: '[[ ]] can evaluate its operands',
  ArithmeticCommand: 'arithmetic can run commands',
}

/** Names that no program reads from its environment. */
const OWN_VARIABLE = /^(?:[a-z][a-z0-9]*|[A-Z])$/

/** Variables that reveal nothing. */
const harmlessVariables: ReadonlySet<string> = new Set(
  '? # $ ~ HOME PWD OLDPWD PATH USER LOGNAME SHELL LANG TERM TMPDIR HOSTNAME CI OSTYPE UID PPID RANDOM SECONDS'.split(
    ' ',
  ),
)

function simpleCommand(node: Command, source: string, walk: Walk): ParsedCommand | undefined {
  const assignments = node.prefix.filter((each) => each.type === 'Assignment')
  const isSafe = (each: Assignment): boolean => {
    const value = each.append === true || each.index !== undefined ? null : valueOf(each)
    const isOwn = node.name === undefined && OWN_VARIABLE.test(each.name)
    return value !== null && (isOwn || isSafeAssignment(each.name, value))
  }
  const { hazards, writes } = effectsOf(node.redirects)
  const isChanged = !assignments.every(isSafe)
  if (node.name === undefined && assignments.length > 0 && !isChanged && node.redirects.length === 0) {
    for (const { name } of assignments) walk.variables.add(name)
    return undefined
  }
  return {
    text: cut(source, node),
    words: node.name === undefined ? [] : [node.name, ...node.args].map((word) => toWord(word, walk)),
    hazards: [...(isChanged ? ['an assignment changes how commands run'] : []), ...hazards],
    inputs: node.redirects.flatMap(inputOf),
    writes,
  }
}

function valueOf({ value }: Assignment): string | null {
  return value.type === 'Word' ? literalWord(value.text) : null
}

function inputOf(redirect: Redirection): readonly string[] {
  if (redirect.type === 'HereDoc') return [redirect.body.text]
  return redirect.type === 'HereString' ? [redirect.target?.value ?? ''] : []
}

/** Why no rule can allow redirections, and the files that they write. */
function effectsOf(redirects: readonly Redirection[]): Required<Pick<ParsedCommand, 'hazards' | 'writes'>> {
  const effects = redirects.map(effectOf)
  return {
    hazards: effects.flatMap((effect) => (typeof effect === 'string' ? [effect] : [])),
    writes: effects.flatMap((effect) => (typeof effect === 'object' ? [effect.writes] : [])),
  }
}

/** A word is understood if both readings agree on it, and every variable in it is known. After some builtins the parser returns assignments. */
function toWord(node: Word | Assignment, { variables }: Walk): ParsedWord {
  const read = completeWord(node.text)
  const loose = node.type === 'Word' ? node.value : (read?.text ?? node.text)
  if (read === undefined || read.text !== loose) return { value: null, loose }
  const { value, expansion } = read
  const isKnown = expansion?.variables.every((name) => harmlessVariables.has(name) || variables.has(name)) === true
  return isKnown ? { value, loose, expansion } : { value, loose }
}

/** Whether a word may be a path in the home folder, where keys are. */
export function isAtHome({ expansion }: ParsedWord): boolean {
  return expansion?.variables.some((name) => name === '~' || name === 'HOME' || name === 'OLDPWD') === true
}

export function isUnderstood({ value, expansion }: ParsedWord): boolean {
  return value !== null || expansion !== undefined
}

function isLiteralCase(node: Extract<SyntaxNode, { type: 'Case' }>): boolean {
  return [node.word, ...node.items.flatMap(({ pattern }) => pattern)].every(
    ({ text }) => text === '*' || literalWord(text) !== null,
  )
}

/** Before anything is allowed, the parser and the second reading must agree. */
function disagreement(source: string, walk: Walk): string | undefined {
  const isLiteral = walk.commands.every(({ words }) => words.every(isUnderstood))
  if (!walk.isPlain || !isLiteral) return undefined // it is not allowed anyway
  const second = secondReading(source)
  if (second === undefined) return 'a second reading of it failed'
  return isSame(source, walk, second) ? undefined : 'two readings of it differ'
}

function isSame(source: string, { spans, subshells, branches }: Walk, second: SecondReading): boolean {
  const parsed = new Set(spans.map(({ pos, end }) => `${pos}:${end}`))
  const left = second.words.filter(({ pos, end }) => !parsed.delete(`${pos}:${end}`))
  const { opening, closing } = second
  return (
    parsed.size === 0 &&
    left.every((span) => isGrammar(source, span)) &&
    closing === subshells + branches &&
    opening >= subshells &&
    opening <= closing
  )
}

/** A reserved word, or the option of `time`. */
function isGrammar(source: string, { pos, end }: Span): boolean {
  const word = source.slice(pos, end)
  return reservedWords.has(word) || (word === '-p' && /(?<![^\s;&|(){}!])time[ \t]+$/.test(source.slice(0, pos)))
}

export const MAX_TEXT = 2000

function cut(source: string, { pos, end }: Span): string {
  return shorten(source.slice(pos, end), MAX_TEXT)
}

/** Why no rule can allow a redirection, or the file that it writes; undefined if it only reads or discards. */
function effectOf(redirect: Redirection): string | { readonly writes: string } | undefined {
  if (redirect.descriptor?.type === 'FileDescriptorVariable') return 'a redirection sets a variable'
  if (redirect.type === 'HereDoc') return hereDocumentHazard(redirect)
  const target = redirect.target === undefined ? null : literalWord(redirect.target.text)
  if (target === null) return 'the target of a redirection is not literal'
  switch (redirect.operator) {
    case '<<<':
      return undefined
    case '<':
      return NETWORK.test(target) ? 'it opens a network connection' : undefined
    case '<&':
      return DESCRIPTOR.test(target) ? undefined : 'the target of a redirection is not a descriptor'
    case '>&':
      return DESCRIPTOR.test(target) ? undefined : writes(target)
    case '>':
    case '>>':
    case '>|':
    case '&>':
    case '&>>':
    case '<>':
      return writes(target)
    default:
      return redirect satisfies never
  }
}

/** Bash opens network connections for these paths. */
const NETWORK = /\/dev\/(?:tcp|udp)\//

const DESCRIPTOR = /^(?:\d+-?|-)$/

const harmlessTargets: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr'])

function writes(target: string): ReturnType<typeof effectOf> {
  if (harmlessTargets.has(target)) return undefined
  return isDataFile(target) ? { writes: target } : `it writes to ${target}`
}

function hereDocumentHazard({ delimiter, body }: Extract<Redirection, { type: 'HereDoc' }>): string | undefined {
  if (delimiter === undefined) return 'a here-document has no end'
  const isExpanded = !delimiter.quoted && !isPlainText(body.text)
  return isExpanded ? 'a here-document has an expansion' : undefined
}
