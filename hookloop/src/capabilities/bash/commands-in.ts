import { forEachChild, parse } from 'unbash'
import type { Assignment, Command, ParsedScript, Redirection, SyntaxNode, Word } from 'unbash'
import { literalWord } from './literal-word.ts'
import { redirectionHazard } from './redirections.ts'
import { reservedWords, secondReading, type SecondReading, type Span } from './second-reading.ts'

/** A word of a command as it was found. */
export type SeenWord = {
  /** What bash makes of it; null when only running it would tell. */
  readonly value: string | null
  /** The word with its quotes removed and its expansions as they are written: good enough to find what is denied. */
  readonly loose: string
}

/** One simple command, or a piece of grammar that does something by itself. */
export type SeenCommand = {
  readonly text: string
  /** The program and its arguments. Empty for an assignment, a redirection or a construct. */
  readonly words: readonly SeenWord[]
  /** Why it can never be allowed by a rule, in words. */
  readonly hazards: readonly string[]
}

export type Seen = {
  readonly commands: readonly SeenCommand[]
  /** Why the text as a whole was not understood, or undefined when it was. */
  readonly doubt: string | undefined
}

/** Every command that a text of bash holds, at any depth. Never throws: what cannot be read is a doubt. */
export function commandsIn(source: string): Seen {
  const walk: Walk = { commands: [], spans: [], subshells: 0, branches: 0, doubt: undefined, isPlain: true }
  try {
    const script = parse(source)
    visit(script, source, walk)
    if (script.shebang !== undefined) walk.isPlain = false
  } catch {
    return { commands: walk.commands, doubt: 'it is nested too deeply to be read' } // the parser ran out of stack
  }
  return { commands: walk.commands, doubt: walk.doubt ?? disagreement(source, walk) }
}

type Walk = {
  readonly commands: SeenCommand[]
  /** Where the words of the text itself are, to compare with a second reading. */
  readonly spans: Span[]
  /** How many pairs of parentheses and how many branches of a case there are. */
  subshells: number
  branches: number
  doubt: string | undefined
  /** Whether there is nothing in it but what the second reading understands. */
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
  if (isUnread(node)) walk.doubt ??= 'a part of it cannot be read'
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

/** Substitutions are parsed when they are looked at; without a script there was nothing that could be parsed. */
function isUnread(node: SyntaxNode): boolean {
  return (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') && node.script === undefined
}

function foundAt(node: SyntaxNode, source: string): SeenCommand | undefined {
  switch (node.type) {
    case 'Command':
      return simpleCommand(node, source)
    case 'Redirected': {
      const hazards = redirectionHazards(node.redirects)
      return hazards.length === 0 ? undefined : { text: cut(source, node), words: [], hazards }
    }
    case 'For':
    case 'Select':
    case 'ArithmeticFor':
    case 'Function':
    case 'Coproc':
    case 'TestCommand':
    case 'ArithmeticCommand':
      return { text: cut(source, node), words: [], hazards: [constructs[node.type]] }
    default:
      return undefined
  }
}

const constructs = {
  For: 'a for loop sets a variable',
  Select: 'a select loop sets a variable',
  ArithmeticFor: 'arithmetic can run commands',
  Function: 'a function changes what a name means',
  Coproc: 'a coprocess runs beside the command',
  TestCommand: '[[ ]] can evaluate its operands',
  ArithmeticCommand: 'arithmetic can run commands',
} as const

function simpleCommand(node: Command, source: string): SeenCommand {
  const hazards = [
    ...(node.prefix.some(({ type }) => type === 'Assignment') ? ['an assignment changes how commands run'] : []),
    ...redirectionHazards(node.redirects),
  ]
  const words = node.name === undefined ? [] : [seenWord(node.name), ...node.args.map(seenArgument)]
  return { text: cut(source, node), words, hazards }
}

function redirectionHazards(redirects: readonly Redirection[]): readonly string[] {
  return redirects.map(redirectionHazard).filter((hazard) => hazard !== undefined)
}

/** `export a=b`: after some builtins the parser reads assignments. */
function seenArgument(argument: Word | Assignment): SeenWord {
  return argument.type === 'Word' ? seenWord(argument) : { value: literalWord(argument.text), loose: argument.text }
}

/** Literal is what both readings of the word agree on. */
function seenWord({ text, value: loose }: Word): SeenWord {
  const value = literalWord(text)
  return { value: value === loose ? value : null, loose }
}

function isLiteralCase(node: Extract<SyntaxNode, { type: 'Case' }>): boolean {
  return [node.word, ...node.items.flatMap(({ pattern }) => pattern)].every(
    ({ text }) => text === '*' || literalWord(text) !== null,
  )
}

/** The parser and the second reading must have found the same, before anything is allowed. */
function disagreement(source: string, walk: Walk): string | undefined {
  const isLiteral = walk.commands.every(({ words }) => words.every(({ value }) => value !== null))
  if (!walk.isPlain || !isLiteral) return undefined // it is not going to be allowed
  const second = secondReading(source)
  if (second === undefined) return 'a second reading of it did not come to an end'
  return isSame(source, walk, second) ? undefined : 'two readings of it differ'
}

function isSame(source: string, { spans, subshells, branches }: Walk, second: SecondReading): boolean {
  const parsed = new Set(spans.map(({ pos, end }) => `${pos}:${end}`))
  const left = second.words.filter(({ pos, end }) => !parsed.delete(`${pos}:${end}`))
  const { opening, closing } = second
  return (
    parsed.size === 0 &&
    left.every(({ pos, end }) => reservedWords.has(source.slice(pos, end))) &&
    closing === subshells + branches &&
    opening >= subshells &&
    opening <= closing
  )
}

const MAX_TEXT = 2000

function cut(source: string, { pos, end }: Span): string {
  const text = source.slice(pos, end)
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`
}
