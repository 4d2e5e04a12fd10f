import type { ParsedWord } from './parse-commands.ts'
import { baseName } from './rules.ts'
import { wordsTaken } from './options.ts'
import { shells, wrappers, type Wrapper } from './wrapper-table.ts'

export type Wrapped = {
  /** Where the inner command may start; several places if an option is unknown. */
  readonly starts: readonly number[]
  /** Shell code that it runs. */
  readonly texts: readonly string[]
  /** Whether it is as safe as the command it runs. */
  readonly isPlain: boolean
}

/** The commands that a command runs; undefined if it runs none. */
export function wrappedIn(words: readonly ParsedWord[], inputs: readonly string[] = []): Wrapped | undefined {
  const [first, ...rest] = words
  if (first === undefined) return undefined
  const name = withoutPrefix(baseName(first.value ?? first.loose))
  const args = rest.map(({ value, loose }) => value ?? loose)
  if (shells.has(name)) return shellText(args, inputs)
  if (name === 'find') return only(placesAfter(args, FIND_RUNS))
  if (name === 'fd' || name === 'fdfind') return only(placesAfter(args, FD_RUNS))
  if (/^ld(?:-linux.*)?\.so/.test(name)) return wrapper({}, words, 1)
  const texts = evaluatedTexts(name, args)
  if (texts !== undefined) return { starts: [], texts, isPlain: false }
  const found = wrapperNamed(name, args)
  return found === undefined ? undefined : wrapper(found.wrapper, words, found.from)
}

/** `gxargs` is the GNU `xargs` on systems with another one. */
function withoutPrefix(name: string): string {
  const short = name.startsWith('g') ? name.slice(1) : name
  const isKnown = Object.hasOwn(wrappers, short) || short === 'find'
  return isKnown && !Object.hasOwn(wrappers, name) ? short : name
}

const FIND_RUNS = /^-(?:exec|execdir|ok|okdir)$/
const FD_RUNS = /^(?:-[a-zA-Z]*[xX]|--exec|--exec-batch)$/

function placesAfter(args: readonly string[], option: RegExp): readonly number[] {
  return args.flatMap((arg, index) => (option.test(arg) && index + 1 < args.length ? [index + 2] : []))
}

function only(starts: readonly number[]): Wrapped | undefined {
  return starts.length === 0 ? undefined : { starts, texts: [], isPlain: false }
}

/** `bash -c text`, with the letter anywhere in the options, or its here-document. */
function shellText(args: readonly string[], inputs: readonly string[]): Wrapped | undefined {
  const at = args.findIndex((arg) => /^[-+][a-zA-Z]*c[a-zA-Z]*$/i.test(arg) || /^--?command$/i.test(arg))
  if (at === -1) return inputs.length === 0 ? undefined : { starts: [], texts: inputs, isPlain: false }
  const text = args.slice(at + 1).find((arg) => !/^[-+]./.test(arg))
  return { starts: [], texts: text === undefined ? [] : [text], isPlain: false }
}

/** The arguments that builtins evaluate. */
function evaluatedTexts(name: string, args: readonly string[]): readonly string[] | undefined {
  switch (name) {
    case 'eval':
      return [args.filter((arg) => arg !== '--').join(' ')]
    case 'trap':
      return args.filter((arg) => !arg.startsWith('-')).slice(0, 1)
    case 'alias':
      return args.map((arg) => arg.slice(arg.indexOf('=') + 1))
    case 'mapfile':
    case 'readarray':
    case 'compgen':
    case 'complete':
      return args.flatMap((arg, index) => (arg === '-C' ? args.slice(index + 1, index + 2) : []))
    default:
      return undefined
  }
}

/** Finds a wrapper by one to three words, with options between them. */
function wrapperNamed(name: string, args: readonly string[]): { wrapper: Wrapper; from: number } | undefined {
  const single = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined
  if (single !== undefined) {
    const isLookup = name === 'command' && /^-[a-zA-Z]*[vV]/.test(args[0] ?? '')
    return isLookup ? undefined : { wrapper: single, from: 1 }
  }
  if (!beginnings.has(name)) return undefined
  let key = name
  for (const [index, arg] of args.slice(0, MAX_WORDS).entries()) {
    if (!beginnings.has(`${key} ${arg}`)) {
      const mayBelong = arg.startsWith('-') || args[index - 1]?.startsWith('-') === true
      if (mayBelong) continue
      return undefined
    }
    key = `${key} ${arg}`
    const wrapper = Object.hasOwn(wrappers, key) ? wrappers[key] : undefined
    if (wrapper !== undefined) return { wrapper, from: index + 2 }
  }
  return undefined
}

/** All beginnings of wrappers: `git`, `git bisect` and `git bisect run`. */
const beginnings: ReadonlySet<string> = new Set(
  Object.keys(wrappers).flatMap((key) => key.split(' ').map((_, index, words) => words.slice(0, index + 1).join(' '))),
)

/** How far to search for the words of a wrapper. */
const MAX_WORDS = 6

type Options = {
  readonly next: number
  readonly starts: readonly number[]
  readonly used: string
  readonly texts: readonly string[]
}

function wrapper(table: Wrapper, words: readonly ParsedWord[], from: number): Wrapped {
  const { next, starts, used, texts } = readOptions(table, words, from)
  const operands = table.operands ?? 0
  const separator = operands > 0 && words[next + operands]?.value === '--' ? 1 : 0 // kubectl exec pod -- ls
  const start = skipAssignments(table, words, next + operands + separator)
  const all = [...starts.map((each) => each + operands), start].filter((each) => each < words.length)
  const isKnown = starts.length === 0 && words.every(({ value }) => value !== null)
  const isPlain =
    isKnown && table.plain !== undefined && start === next + operands && used.split('').every(isIn(table.plain))
  return { starts: [...new Set(all)], texts: [...texts, ...shellTexts(table, words, start)], isPlain }
}

function isIn(letters: string): (letter: string) => boolean {
  return (letter) => letters.includes(letter)
}

/** Reads options up to the first other word. An unknown option may take the next word as its value, or not. */
function readOptions(table: Wrapper, words: readonly ParsedWord[], from: number): Options {
  const [starts, texts]: [number[], string[]] = [[], []]
  let used = ''
  let at = from
  for (; at < words.length && starts.length < MAX_STARTS; at += 1) {
    const { value, loose } = words[at]!
    const word = value ?? loose
    if (value === null && !word.startsWith('-')) starts.push(at)
    else if (word === '--') return { next: at + 1, starts, used, texts }
    else if (!word.startsWith('-')) break
    const text = textOption(table, words, at)
    if (text !== undefined) texts.push(text)
    const taken = word.startsWith('--') ? longTaken(table, word) : wordsTaken(table, word)
    used += word.startsWith('--') ? longUsed(table, word) : lettersUsed(table, word)
    const isValue = at + 1 < words.length && !(words[at + 1]!.value ?? '-').startsWith('-')
    if (taken === undefined && isValue) starts.push(at + 1)
    if (taken === 1 || (taken === undefined && isValue)) at += 1
  }
  return { next: at, starts, used, texts }
}

const MAX_STARTS = 8

/** How many further words a long option takes; undefined if it is unknown. */
function longTaken({ long = [], longFlags = [] }: Wrapper, word: string): 0 | 1 | undefined {
  if (word.includes('=') || longFlags.includes(word)) return 0
  return long.includes(word) ? 1 : undefined
}

/** An empty string for a safe long option, and an unknown letter for any other. */
function longUsed({ plainLong = [] }: Wrapper, word: string): string {
  return plainLong.includes(word.split('=')[0]!) ? '' : '?'
}

/** The letters of a cluster up to one that takes the rest as its value. */
function lettersUsed({ valued = '' }: Wrapper, word: string): string {
  const end = word.split('').findIndex((letter, index) => index > 0 && valued.includes(letter))
  return word === '-' ? '?' : word.slice(1, end === -1 ? word.length : end + 1)
}

/** The shell code that an option takes: the next word or the rest of this one, also in a cluster or abbreviated. */
function textOption(table: Wrapper, words: readonly ParsedWord[], at: number): string | undefined {
  const word = looseAt(words, at)
  const taken = word.startsWith('--') ? longText(table, word) : lettersText(table, word)
  return taken === '' ? looseAt(words, at + 1) : taken
}

function longText({ text = [] }: Wrapper, word: string): string | undefined {
  const [name = '', ...value] = word.split('=')
  const isOne = name.length > 3 && text.some((each) => each.startsWith(name))
  return isOne ? value.join('=') : undefined
}

function lettersText({ text = [], valued = '' }: Wrapper, word: string): string | undefined {
  if (!word.startsWith('-')) return undefined
  for (let index = 1; index < word.length; index += 1) {
    if (text.includes(`-${word[index]!}`)) return word.slice(index + 1).replace(/^=/, '')
    if (valued.includes(word[index]!)) return undefined
  }
  return undefined
}

function looseAt(words: readonly ParsedWord[], at: number): string {
  return words[at]?.value ?? words[at]?.loose ?? ''
}

function skipAssignments({ assigns }: Wrapper, words: readonly ParsedWord[], from: number): number {
  if (assigns !== true) return from
  let at = from
  while (at < words.length && /^\w+=/.test(looseAt(words, at))) at += 1
  return at
}

/** The text after `flock file -c`, and the words that are passed to a shell. */
function shellTexts(table: Wrapper, words: readonly ParsedWord[], start: number): readonly string[] {
  if (start >= words.length) return []
  if (table.text?.includes(looseAt(words, start)) === true) return [looseAt(words, start + 1)]
  const texts = words.slice(start).map(({ value, loose }) => value ?? loose)
  return table.shell === true ? [texts.join(' ')] : []
}
