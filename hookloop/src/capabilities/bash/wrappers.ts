import type { SeenWord } from './commands-in.ts'
import { baseName } from './matching.ts'
import { shells, wrappers, type Wrapper } from './wrapper-table.ts'

export type Wrapped = {
  /** Where the command that is run may begin. More than one when an option is not known. */
  readonly starts: readonly number[]
  /** Texts that a shell is going to read. */
  readonly texts: readonly string[]
  /** Whether it is as harmless as the command that it runs. */
  readonly isPlain: boolean
}

/** What a command runs besides itself, or undefined when it is a command like any other. */
export function wrappedIn(words: readonly SeenWord[]): Wrapped | undefined {
  const [first, ...rest] = words
  if (first === undefined) return undefined
  const name = baseName(first.value ?? first.loose)
  const args = rest.map(({ value, loose }) => value ?? loose)
  if (shells.has(name)) return shellText(args)
  if (name === 'find') return only(placesAfter(args, FIND_RUNS))
  if (name === 'fd' || name === 'fdfind') return only(placesAfter(args, FD_RUNS))
  if (/^ld(?:-linux.*)?\.so/.test(name)) return wrapper({}, words, 1)
  const texts = evaluatedTexts(name, args)
  if (texts !== undefined) return { starts: [], texts, isPlain: false }
  const found = wrapperNamed(name, args)
  return found === undefined ? undefined : wrapper(found.wrapper, words, found.from)
}

const FIND_RUNS = /^-(?:exec|execdir|ok|okdir)$/
const FD_RUNS = /^(?:-[a-zA-Z]*[xX]|--exec|--exec-batch)$/

function placesAfter(args: readonly string[], option: RegExp): readonly number[] {
  return args.flatMap((arg, index) => (option.test(arg) && index + 1 < args.length ? [index + 2] : []))
}

function only(starts: readonly number[]): Wrapped | undefined {
  return starts.length === 0 ? undefined : { starts, texts: [], isPlain: false }
}

/** `bash -c text`, with the letter anywhere among the options. */
function shellText(args: readonly string[]): Wrapped | undefined {
  const at = args.findIndex((arg) => /^[-+][a-zA-Z]*c[a-zA-Z]*$/i.test(arg) || /^--?command$/i.test(arg))
  if (at === -1) return undefined
  const text = args.slice(at + 1).find((arg) => !/^[-+]./.test(arg))
  return { starts: [], texts: text === undefined ? [] : [text], isPlain: false }
}

/** What builtins read as a command. */
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

/** By one, two or three words, with options between them. */
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

/** `git`, `git bisect` and `git bisect run`. */
const beginnings: ReadonlySet<string> = new Set(
  Object.keys(wrappers).flatMap((key) => key.split(' ').map((_, index, words) => words.slice(0, index + 1).join(' '))),
)

/** How far the words that make a wrapper are looked for. */
const MAX_WORDS = 6

type Options = {
  readonly next: number
  readonly starts: readonly number[]
  readonly used: string
  readonly texts: readonly string[]
}

function wrapper(table: Wrapper, words: readonly SeenWord[], from: number): Wrapped {
  const { next, starts, used, texts } = readOptions(table, words, from)
  const operands = table.operands ?? 0
  const beyond = operands > 0 && words[next + operands]?.value === '--' ? 1 : 0 // kubectl exec pod -- ls
  const start = skipAssignments(table, words, next + operands + beyond)
  const all = [...starts.map((each) => each + operands), start].filter((each) => each < words.length)
  const isKnown = starts.length === 0 && words.every(({ value }) => value !== null)
  const isPlain =
    isKnown && table.plain !== undefined && start === next + operands && used.split('').every(isIn(table.plain))
  return { starts: [...new Set(all)], texts: [...texts, ...shellTexts(table, words, start)], isPlain }
}

function isIn(letters: string): (letter: string) => boolean {
  return (letter) => letters.includes(letter)
}

/** Reads options until the first word that is none. An option that is not known may take the word after it, or not. */
function readOptions(table: Wrapper, words: readonly SeenWord[], from: number): Options {
  const [starts, texts]: [number[], string[]] = [[], []]
  let used = ''
  let at = from
  for (; at < words.length && starts.length < MAX_STARTS; at += 1) {
    const { value, loose } = words[at]!
    const word = value ?? loose
    if (value === null && !word.startsWith('-')) starts.push(at)
    else if (word === '--') return { next: at + 1, starts, used, texts }
    else if (!word.startsWith('-') || word === '-') break
    const text = textOption(table, words, at)
    if (text !== undefined) texts.push(text)
    const taken = word.startsWith('--') ? longTaken(table, word) : shortTaken(table, word)
    used += word.startsWith('--') ? (taken === undefined ? '?' : '') : (word.slice(1)[0] ?? '')
    const isValue = at + 1 < words.length && !(words[at + 1]!.value ?? '-').startsWith('-')
    if (taken === undefined && isValue) starts.push(at + 1)
    if (taken === 1 || (taken === undefined && isValue)) at += 1
  }
  return { next: at, starts, used, texts }
}

const MAX_STARTS = 8

/** How many further words an option takes; undefined when that is not known. */
function longTaken({ long = [] }: Wrapper, word: string): 0 | 1 | undefined {
  if (word.includes('=')) return 0
  return long.includes(word) ? 1 : undefined
}

function shortTaken({ valued = '', flags = '' }: Wrapper, word: string): 0 | 1 | undefined {
  for (let index = 1; index < word.length; index += 1) {
    if (valued.includes(word[index]!)) return index === word.length - 1 ? 1 : 0
    if (!flags.includes(word[index]!)) return undefined
  }
  return 0
}

function textOption({ text = [] }: Wrapper, words: readonly SeenWord[], at: number): string | undefined {
  const word = looseAt(words, at)
  const option = text.find((each) => word === each || word.startsWith(`${each}=`) || isAttached(each, word))
  if (option === undefined) return undefined
  return word === option ? looseAt(words, at + 1) : word.slice(option.length).replace(/^=/, '')
}

/** The text follows the letter at once. */
function isAttached(option: string, word: string): boolean {
  return option.length === 2 && word.startsWith(option)
}

function looseAt(words: readonly SeenWord[], at: number): string {
  return words[at]?.value ?? words[at]?.loose ?? ''
}

function skipAssignments({ assigns }: Wrapper, words: readonly SeenWord[], from: number): number {
  if (assigns !== true) return from
  let at = from
  while (at < words.length && /^\w+=/.test(looseAt(words, at))) at += 1
  return at
}

/** What stands behind `flock file -c`, and the words that are handed to a shell. */
function shellTexts(table: Wrapper, words: readonly SeenWord[], start: number): readonly string[] {
  if (start >= words.length) return []
  if (table.text?.includes(looseAt(words, start)) === true) return [looseAt(words, start + 1)]
  const texts = words.slice(start).map(({ value, loose }) => value ?? loose)
  return table.shell === true ? [texts.join(' ')] : []
}
