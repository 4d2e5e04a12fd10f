import { posix } from 'node:path'
import { grammarOf, isBeginning, type Grammar, type Option } from './grammar.ts'
import { isDataFile, isSafeAssignment, kinds, mayBeData } from './kinds.ts'
import { textOf, type ParsedWord } from './understand-word.ts'
import { baseName } from './rules.ts'

/** The first word of a command that is not known to be harmless, and why. */
export type Problem = { readonly index: number; readonly why: string }

export type Reading = {
  readonly problem: Problem | undefined
  /** Where commands start that it runs. More than one if an option is not known, or if it runs several. */
  readonly starts: readonly number[]
  /** Shell code that it runs. */
  readonly texts: readonly string[]
  /** Files that it writes. */
  readonly writes: readonly string[]
}

export type Known = {
  readonly name: string
  readonly grammar: Grammar
  /** The indexes of the program and its subcommands. */
  readonly keys: readonly number[]
  /** The options before its last subcommands, if there are any, and the grammar that they have. */
  readonly before: { readonly grammar: Grammar; readonly from: number; readonly to: number } | undefined
}

/**
 * The grammar of a command. An allowed command must have the exact name of a program; to find what a command runs, the name may be
 * spelled in other ways.
 */
export function findGrammar(
  words: readonly ParsedWord[],
  { isExact }: { readonly isExact: boolean },
): Known | undefined {
  const [program] = words
  if (program === undefined || (isExact && program.value === null)) return undefined
  let name = isExact ? program.value!.slice(program.value!.lastIndexOf('/') + 1) : looseName(program)
  let keys: readonly number[] = [0]
  for (let at = 1; isBeginning(name) && at < Math.min(words.length, MAX_KEYS); at += 1) {
    const longer = `${name} ${textOf(words[at]!)}`
    if (grammarOf(longer) !== undefined || isBeginning(longer)) [name, keys] = [longer, [...keys, at]]
    else if ((isExact && keys.at(-1)! >= keys.length) || (!isOption(words[at]!) && !isOption(words[at - 1]!))) break
  }
  const grammar = grammarOf(name)
  if (grammar === undefined) return undefined
  const gap = keys.findIndex((key, index) => key > index)
  if (gap === -1) return { name, grammar, keys, before: undefined }
  const earlier = grammarOf(name.split(' ').slice(0, gap).join(' ')) ?? NO_OPTIONS
  return { name, grammar, keys, before: { grammar: earlier, from: gap, to: keys[gap]! } }
}

/** Of a program without options that are known before its subcommand. */
const NO_OPTIONS: Grammar = { flags: new Set(), options: new Map(), operands: [], isRepeated: false, usesFolder: true }

/** How far to search for subcommands. */
const MAX_KEYS = 8

/** `gxargs` is the GNU `xargs` on systems with another one. */
function looseName({ value, loose }: ParsedWord): string {
  const name = baseName(value ?? loose)
  if (/^ld(?:-linux.*)?\.so/.test(name)) return 'ld.so'
  const short = name.startsWith('g') && grammarOf(name) === undefined ? name.slice(1) : name
  return grammarOf(short) === undefined ? name : short
}

type Options = {
  readonly from: number
  readonly to?: number
  /** Whether a rule names the word, so that it need not be known. Default: none is. */
  readonly isNamed?: (index: number) => boolean
}

/** One more than are judged: a command with too many is blocked, so that none hides behind the others. */
const MAX_STARTS = 65

/** Reads the arguments of a program as the program does. */
export function readArguments(grammar: Grammar, words: readonly ParsedWord[], options: Options): Reading {
  const { from, to = words.length, isNamed = () => false } = options
  const { flags, operands, isRepeated } = grammar
  const [starts, texts, writes]: [number[], string[], string[]] = [[], [], []]
  /** The paths of a program that copies or moves. */
  const paths: number[] = []
  /** Where the command may start too, because an option is not known. */
  const guesses: number[] = []
  const runsAt = operands.findIndex((kind) => kind === 'command' || kind === 'shell')
  let [at, operand, isEnded] = [from, 0, flags.has('raw')]
  let problem: Problem | undefined

  while (at < to) {
    const word = words[at]!
    if (isEnded || !isOption(word)) readOperand(word)
    else if (word.value === '--' && (!flags.has('whole') || grammar.options.has('--'))) [isEnded, at] = [true, at + 1]
    else readOption(word)
  }
  const target = paths.pop()
  for (const source of paths) readCopy(source, target!)
  const needsOperand = /^(?:run|path|alias|shellopt|exported)$/.test(operands[0] ?? '')
  const isIdle = runsAt === -1 ? !needsOperand || operand > 0 : starts.length + texts.length > 0
  const isInformation = words.length === from + 1 && /^(?:--version|--help|-[vVh])$/.test(textOf(words[from]!))
  if (!isIdle && !isInformation && !flags.has('plain') && !flags.has('judged') && to === words.length)
    problem ??= { index: to, why: needsOperand && operands[0] !== 'run' ? 'it has no operand' : 'it runs its input' }
  starts.push(...guesses.map((guess) => guess + runsAt).filter((start) => start < to))
  return { problem, starts, texts, writes }

  function fail(index: number, why: string): void {
    if (problem === undefined && !isNamed(index)) problem = { index, why }
  }

  function readOperand(word: ParsedWord): void {
    const last = operands.length - 1
    const kind = operands[isRepeated ? Math.min(operand, last) : operand]
    if (kind === 'command' || kind === 'shell') return readCommand(kind)
    if (kind === undefined) fail(at, `${shown(word)} is not known to be harmless here`)
    else check(word, kind, isRepeated && operand >= last)
    if (flags.has('first')) isEnded = true
    operand += 1
    at += 1
  }

  function readCommand(kind: 'command' | 'shell'): void {
    if (words[at]!.value === '--') at += 1
    for (; flags.has('assigns') && at < to; at += 1) {
      const [, name, value = ''] = /^(\w+)=([^]*)$/.exec(textOf(words[at]!)) ?? []
      if (name === undefined) break
      if (words[at]!.value === null || !isSafeAssignment(name, value)) fail(at, `${shown(words[at]!)} sets a variable`)
    }
    const [start, first, second] = [at, words[at], words[at + 1]]
    at = to
    if (first === undefined || start >= to) return
    if (kind === 'shell') texts.push(words.slice(start, to).map(textOf).join(' '))
    else if (grammar.options.get(textOf(first))?.kind === 'shell' && second !== undefined) texts.push(textOf(second))
    else starts.push(start)
    if (first.value === null) guesses.push(start + 1 - runsAt)
    if (!flags.has('plain') && !flags.has('judged')) fail(start, `it runs ${shown(first)}`)
  }

  function readOption(word: ParsedWord): void {
    const text = textOf(word)
    at += 1
    if (/^-\d+$/.test(text) && grammar.options.has('-#')) return
    if (text.startsWith('--') || flags.has('whole')) readLong(word, text)
    else readLetters(word, text)
  }

  function readLong(word: ParsedWord, text: string): void {
    const equals = text.indexOf('=')
    const name = equals === -1 ? text : text.slice(0, equals)
    // An abbreviation is not known to be harmless, but it may be shell code.
    const isShell = ([each, { kind }]: [string, Option]): boolean =>
      kind === 'shell' && name.length > 3 && each.startsWith(name)
    const option = grammar.options.get(name) ?? (name.length > 3 ? [...grammar.options].find(isShell)?.[1] : undefined)
    if (option === undefined || (equals !== -1 && option.values === 0 && !option.isOptional)) {
      return readUnknown(word, equals === -1)
    }
    if (equals === -1) return readValues(option, undefined)
    if (word.value === null && (word.expansion?.prefix.length ?? 0) <= equals) readUnknown(word, false)
    readValues(option, attachedTo(word, text.slice(equals + 1)))
  }

  function readLetters(word: ParsedWord, text: string): void {
    // In `-g*.ts` only the value is a pattern.
    const known = word.value ?? word.expansion?.prefix ?? ''
    let isKnown = known !== ''
    for (let letter = 1; letter < text.length; letter += 1) {
      const option = grammar.options.get(`-${text[letter]!}`)
      isKnown &&= option !== undefined && letter < known.length
      if (option === undefined || (option.values === 0 && !option.isOptional)) continue
      if (!isKnown) readUnknown(word, false)
      const rest = text.slice(letter + 1)
      return readValues(option, rest === '' ? undefined : attachedTo(word, rest))
    }
    if (!isKnown) readUnknown(word, true)
  }

  function readUnknown(word: ParsedWord, mayTakeValue: boolean): void {
    fail(at - 1, `${shown(word)} is not known to be harmless`)
    const next = words[at]
    if (!mayTakeValue || runsAt === -1 || next === undefined || isOption(next)) return
    if (guesses.length < MAX_STARTS) guesses.push(at)
    at += 1
  }

  function readValues({ values, kind }: Option, attached: ParsedWord | undefined): void {
    const option = at - 1
    if (kind === 'command' || kind === 'inner') return readInnerCommand(option, kind === 'inner')
    if (kind === 'shell') return readShellText(option, attached)
    if (kind === 'sed') operand = Math.max(operand, 1) // no operand is a script then
    if (attached !== undefined && kind === 'next') fail(option, `${shown(words[option]!)} may be several options`)
    if (attached !== undefined) check(attached, kind, true, option)
    for (let left = values - (attached === undefined ? 0 : 1); left > 0; left -= 1) {
      const value = words[at]
      if (value === undefined || at >= to) return fail(option, `${shown(words[option]!)} has no value`)
      // A program for which the value is optional would read this as another option.
      const isSuspect = kind !== 'all' && isOption(value) && !/^-\d/.test(textOf(value))
      if (isSuspect) fail(at, `${shown(value)} may be an option`)
      check(value, kind, false)
      at += 1
    }
  }

  /** `find -exec` and similar: up to a semicolon. */
  function readInnerCommand(option: number, isJudged: boolean): void {
    if (!isJudged) fail(option, `${shown(words[option]!)} runs a command`)
    if (at >= to) return
    if (starts.length < MAX_STARTS) starts.push(at)
    else fail(option, 'it runs many commands')
    if (!isJudged) fail(at, `it runs ${shown(words[at]!)}`)
    at = endOfInner(words, at) + 1
  }

  function readShellText(option: number, attached: ParsedWord | undefined): void {
    fail(option, `${shown(words[option]!)} runs shell code`)
    if (attached !== undefined) return void texts.push(textOf(attached).replace(/^=/, ''))
    while (at < to && /^[-+]./.test(textOf(words[at]!))) at += 1
    if (at < to) texts.push(textOf(words[at]!))
    at += 1
  }

  function check(word: ParsedWord, kind: string, mayBeMany: boolean, index = at): void {
    const { value } = word
    if (kind === 'alias') texts.push(textOf(word).slice(textOf(word).indexOf('=') + 1))
    const isHarmless = value === null ? isHarmlessExpansion(word, kind, mayBeMany) : isOfKind(kind, value)
    if (!isHarmless) return fail(index, whyNot(word, kind))
    if (kind === 'work' && flags.has('into')) paths.push(index)
    else if (/^(?:data|work)$/.test(kind) && value !== '/dev/null') writes.push(textOf(word))
  }

  /** What a redirection may have written must not become another kind of file, such as `Makefile`. */
  function readCopy(source: number, target: number): void {
    const [from, into] = [textOf(words[source]!), textOf(words[target]!)]
    const isFolder = into === '.' || into.endsWith('/')
    if (from.endsWith('/')) fail(source, `what is in ${shown(words[source]!)} may replace other files`)
    if ((words[source]!.value === null || mayBeData(from)) && !isDataFile(isFolder ? posix.join(into, 'a.txt') : into))
      fail(target, `a file of data may become ${shown(words[target]!)}`)
    writes.push(...(isFolder ? [] : [into]), posix.join(into, from.slice(from.lastIndexOf('/') + 1)))
  }

  /** What a pattern results in is not known: it may be several words, and one of them may be an option. */
  function isHarmlessExpansion(word: ParsedWord, kind: string, mayBeMany: boolean): boolean {
    const { expansion, loose } = word
    if (expansion === undefined) return false
    const { prefix, isOne, hasGlob } = expansion
    if (kind === 'output') return isOfKind(kind, prefix)
    if (/^(?:below|code|work|path)$/.test(kind)) {
      const isPattern = hasGlob || kind === 'path'
      return isPattern && prefix !== '' && (isOne || mayBeMany) && isOfKind(kind === 'path' ? 'below' : kind, loose)
    }
    if (!/^(?:any|all|file)$/.test(kind)) return false
    if (flags.has('pure') || (kind !== 'any' && isOne)) return true // also the value of an option, whatever it begins with
    return (isOne || mayBeMany) && (isEnded || (prefix !== '' && !prefix.startsWith('-')))
  }
}

/** The value that is attached to an option, which is no option itself. */
function attachedTo({ value, expansion }: ParsedWord, rest: string): ParsedWord {
  if (expansion === undefined) return { value: value && rest, loose: rest }
  return { value, loose: rest, expansion: { ...expansion, prefix: '=' } }
}

function isOfKind(kind: string, value: string): boolean {
  return kinds[kind]?.(value) ?? kind.split('|').includes(value)
}

function whyNot(word: ParsedWord, kind: string): string {
  if (word.value === null) return `what ${shown(word)} expands to is not known to be harmless`
  if (kind === 'run') return `${shown(word)} is run`
  if (/^(?:sed|awk|jq)$/.test(kind)) return `the ${kind} script may run commands, or read or write files`
  return `${shown(word)} is not known to be harmless here`
}

/** The index of the semicolon, or of the plus sign after `{}`, that ends a command of `find`. */
export function endOfInner(words: readonly ParsedWord[], start: number): number {
  let end = start
  const isEnd = (at: number): boolean =>
    words[at]!.value === ';' || (words[at]!.value === '+' && words[at - 1]!.value === '{}')
  while (end < words.length && !isEnd(end)) end += 1
  return end
}

function isOption(word: ParsedWord): boolean {
  const text = textOf(word)
  return text.length > 1 && text.startsWith('-')
}

function shown(word: ParsedWord): string {
  const text = textOf(word)
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`
}
