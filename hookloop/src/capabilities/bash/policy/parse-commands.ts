import { forEachChild, parse } from 'unbash'
import type { Command, Redirection, SyntaxNode } from 'unbash'
import { shorten } from '../../../values/text.ts'
import { crossCheckParse, reservedWords, type Span } from './cross-check-parse.ts'
import { isSafeAssignment } from './kinds.ts'
import { effectsOf } from './redirections.ts'
import { isUnderstood, toWord, type ParsedWord } from './understand-word.ts'

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
}

/** Every command in a bash text, at any depth. Never throws: `doubt` says why the text was not understood completely. */
export function parseCommands(source: string): {
  readonly commands: readonly ParsedCommand[]
  readonly doubt: string | undefined
} {
  const walk: Walk = { commands: [], spans: [], subshells: 0, substitutions: 0 }
  try {
    visit(parse(source), source, walk)
  } catch {
    return { commands: walk.commands, doubt: 'it is nested too deeply, or has too many commands' } // or the stack ended
  }
  return { commands: walk.commands, doubt: walk.doubt ?? disagreement(source, walk) }
}

type Walk = {
  readonly commands: ParsedCommand[]
  /** The positions of words, to compare with the second reading. */
  readonly spans: Span[]
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
  const found = foundAt(node)
  if (found !== undefined) walk.commands.push({ ...found, text: shorten(source.slice(node.pos, node.end), MAX_TEXT) })
  const isSubstitution = node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution'
  if (isSubstitution && node.script === undefined) walk.doubt ??= 'a part of it cannot be parsed'
  if (isSubstitution) walk.substitutions += 1
  if (walk.substitutions > MAX_SUBSTITUTIONS || walk.commands.length > MAX_COMMANDS) throw new RangeError('too many')
  if (node.type === 'Word' || node.type === 'Assignment') walk.spans.push({ pos: node.pos, end: node.end })
  if (node.type === 'Subshell') walk.subshells += 1
  // An assignment is one word.
  const parent = node.type === 'Assignment' && node.value.type === 'Word' ? node.value : node
  forEachChild(parent, (child) => visit(child, inner, walk))
}

type Found = Omit<ParsedCommand, 'text'>
const NOTHING: Found = { words: [], hazards: [], inputs: [], writes: [] }

function foundAt(node: SyntaxNode): Found | undefined {
  if (node.type === 'Command') return simpleCommand(node)
  if (node.type === 'Redirected') {
    const effects = effectsOf(node.redirects)
    return effects.hazards.length + effects.writes.length > 0 ? { ...NOTHING, ...effects } : undefined
  }
  return CONSTRUCTS.test(node.type) ? { ...NOTHING, hazards: [`no rule allows the construct ${node.type}`] } : undefined
}

/** They set variables, evaluate their operands, run commands that are not in the text, or change what a name means. */
const CONSTRUCTS = /^(?:For|TestCommand|Case|Select|Arithmetic(?:For|Command)|Function|Coproc)$/

function simpleCommand({ name, args, prefix, redirects }: Command): Found {
  const words = [...(name === undefined ? [] : [name]), ...args].map(toWord)
  const isChanged = prefix.some(
    (each) => each.type === 'Assignment' && (name === undefined || !isSafe(each.name, each.text)),
  )
  const { hazards, writes } = effectsOf(redirects)
  return {
    words,
    hazards: [
      ...(isChanged ? ['an assignment changes how commands run'] : []),
      ...(isMove(words) ? ['it runs in another folder, or changes the folder of later commands'] : []),
      ...hazards,
    ],
    inputs: redirects.flatMap(inputOf),
    writes,
  }
}

/** Whether the variable before a command has a literal value, and changes nothing about how programs run. */
function isSafe(name: string, text: string): boolean {
  const value = text.startsWith(`${name}=`) ? text.slice(name.length + 1) : null
  return value !== null && isSafeAssignment(name, value)
}

const MOVES = /^(?:cd|pushd|popd)$/

function isMove([program, ...args]: readonly ParsedWord[]): boolean {
  const name = program?.value ?? program?.loose ?? ''
  if (name === 'git')
    return args.some(({ loose }, index) => loose.startsWith('-C') && args.slice(0, index).every(isOption))
  return MOVES.test(name) || (/^(?:command|builtin)$/.test(name) && args.some(({ loose }) => MOVES.test(loose)))
}

function isOption({ loose }: ParsedWord): boolean {
  return loose.startsWith('-')
}

function inputOf(redirect: Redirection): readonly string[] {
  if (redirect.type === 'HereDoc') return [redirect.body.text]
  return redirect.type === 'HereString' ? [redirect.target?.value ?? ''] : []
}

/** Before anything is allowed, the parser and the second reading must agree. */
function disagreement(source: string, { commands, spans, subshells }: Walk): string | undefined {
  const isUnclear = commands.some(({ words, hazards }) => hazards.length > 0 || !words.every(isUnderstood))
  if (isUnclear) return undefined // it is not allowed anyway
  const second = crossCheckParse(source)
  if (second === undefined) return 'a second reading of it failed'
  const parsed = new Set(spans.map(({ pos, end }) => `${pos}:${end}`))
  const left = second.words.filter(({ pos, end }) => !parsed.delete(`${pos}:${end}`))
  const isSame =
    parsed.size === 0 &&
    left.every((span) => isGrammar(source, span)) &&
    second.opening === subshells &&
    second.closing === subshells
  return isSame ? undefined : 'two readings of it differ'
}

/** A reserved word, or the option of `time`. */
function isGrammar(source: string, { pos, end }: Span): boolean {
  const word = source.slice(pos, end)
  return reservedWords.has(word) || (word === '-p' && /(?<![^\s;&|(){}!])time[ \t]+$/.test(source.slice(0, pos)))
}

export const MAX_TEXT = 2000
