import { shorten } from '../../../state/text.ts'
import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, ParsedScript, Redirection, SyntaxNode, Word } from 'unbash'
import { literalWord } from './literal-word.ts'
import { reservedWords, secondReading, type SecondReading, type Span } from './second-reading.ts'

/** A word of a command. */
export type ParsedWord = {
  /** The word after quote removal; null if bash would expand it. */
  readonly value: string | null
  /** The word without quotes and with its expansions as written. Used to find denied commands. */
  readonly loose: string
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
}

type ParsedText = {
  readonly commands: readonly ParsedCommand[]
  /** Why the text was not understood completely; undefined if it was. */
  readonly doubt: string | undefined
}

/** Every command in a bash text, at any depth. Never throws: `doubt` says what cannot be parsed. */
export function parseCommands(source: string): ParsedText {
  const walk: Walk = { commands: [], spans: [], subshells: 0, branches: 0, doubt: undefined, isPlain: true }
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
  /** The numbers of subshells and of case branches. */
  subshells: number
  branches: number
  doubt: string | undefined
  /** Whether the second reading understands everything in it. */
  isPlain: boolean
}

function visit(node: SyntaxNode, source: string, walk: Walk): void {
  let inner = source
  if (node.type === 'Script') {
    inner = node.source ?? source
    noteErrors(node, walk)
  }
  const found = foundAt(node, source)
  if (found !== undefined) {
    walk.commands.push(found)
    if (found.hazards.length > 0) walk.isPlain = false
  }
  if (isUnparsed(node)) walk.doubt ??= 'a part of it cannot be parsed'
  if (node.type === 'Word' || node.type === 'HereDocDelimiter') walk.spans.push({ pos: node.pos, end: node.end })
  if (node.type === 'Subshell') walk.subshells += 1
  if (node.type === 'CaseItem') walk.branches += 1
  if (node.type === 'Case' && !isLiteralCase(node)) {
    walk.commands.push({ text: cut(source, node), words: [], hazards: ['a case that depends on an expansion'] })
    walk.isPlain = false
  }
  forEachChild(node, (child) => visit(child, inner, walk))
}

function noteErrors({ errors }: ParsedScript, walk: Walk): void {
  const [first] = errors ?? []
  if (first !== undefined) walk.doubt ??= `it cannot be parsed: ${first.message}`
}

/** Substitutions are parsed on access; without a script parsing failed. */
function isUnparsed(node: SyntaxNode): boolean {
  return (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && node.script === undefined
}

function foundAt(node: SyntaxNode, source: string): ParsedCommand | undefined {
  switch (node.type) {
    case 'Command':
      return simpleCommand(node, source)
    case 'Redirected': {
      const hazards = redirectionHazards(node.redirects)
      return hazards.length === 0 ? undefined : { text: cut(source, node), words: [], hazards }
    }
    default: {
      const hazard = constructs[node.type]
      return hazard === undefined ? undefined : { text: cut(source, node), words: [], hazards: [hazard] }
    }
  }
}

const constructs: { readonly [type in SyntaxNode['type']]?: string } = {
  For: 'a for loop sets a variable',
  Select: 'a select loop sets a variable',
  ArithmeticFor: 'arithmetic can run commands',
  Function: 'a function changes what a name means',
  Coproc: 'a coprocess runs beside the command',
  TestCommand: '[[ ]] can evaluate its operands',
  ArithmeticCommand: 'arithmetic can run commands',
}

function simpleCommand(node: Command, source: string): ParsedCommand {
  const hazards = [
    ...(node.prefix.some(({ type }) => type === 'Assignment') ? ['an assignment changes how commands run'] : []),
    ...redirectionHazards(node.redirects),
  ]
  const words = node.name === undefined ? [] : [toWord(node.name), ...node.args.map(toArgument)]
  return { text: cut(source, node), words, hazards, inputs: node.redirects.flatMap(inputOf) }
}

function inputOf(redirect: Redirection): readonly string[] {
  if (redirect.type === 'HereDoc') return [redirect.body.text]
  return redirect.type === 'HereString' ? [redirect.target?.value ?? ''] : []
}

function redirectionHazards(redirects: readonly Redirection[]): readonly string[] {
  return redirects.map(redirectionHazard).filter((hazard) => hazard !== undefined)
}

/** After some builtins the parser returns assignments, as in `export a=b`. */
function toArgument(argument: Word | Assignment): ParsedWord {
  return argument.type === 'Word' ? toWord(argument) : { value: literalWord(argument.text), loose: argument.text }
}

/** A word is literal if both readings agree on its value. */
function toWord({ text, value: loose }: Word): ParsedWord {
  const value = literalWord(text)
  return { value: value === loose ? value : null, loose }
}

function isLiteralCase(node: Extract<SyntaxNode, { type: 'Case' }>): boolean {
  return [node.word, ...node.items.flatMap(({ pattern }) => pattern)].every(
    ({ text }) => text === '*' || literalWord(text) !== null,
  )
}

/** Before anything is allowed, the parser and the second reading must agree. */
function disagreement(source: string, walk: Walk): string | undefined {
  const isLiteral = walk.commands.every(({ words }) => words.every(({ value }) => value !== null))
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

/** Why no rule can allow a redirection; undefined if it only reads or discards. */
function redirectionHazard(redirect: Redirection): string | undefined {
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
      return DESCRIPTOR.test(target) || harmlessTargets.has(target) ? undefined : writes(target)
    case '>':
    case '>>':
    case '>|':
    case '&>':
    case '&>>':
    case '<>':
      return harmlessTargets.has(target) ? undefined : writes(target)
    default:
      return redirect satisfies never
  }
}

/** Bash opens network connections for these paths. */
const NETWORK = /\/dev\/(?:tcp|udp)\//

const DESCRIPTOR = /^(?:\d+-?|-)$/

const harmlessTargets: ReadonlySet<string> = new Set(['/dev/null', '/dev/stdout', '/dev/stderr'])

function writes(target: string): string {
  return `it writes to ${target}`
}

function hereDocumentHazard({ delimiter, body }: Extract<Redirection, { type: 'HereDoc' }>): string | undefined {
  if (delimiter === undefined) return 'a here-document has no end'
  const isExpanded = !delimiter.quoted && /[$`]/.test(body.text)
  return isExpanded ? 'a here-document has an expansion' : undefined
}
