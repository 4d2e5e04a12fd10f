import { checkOptions, invalidOption } from '../../../values/check-options.ts'
import { matchesWildcard } from '../../../plugin.ts'
import { grammarOf } from './grammar.ts'
import { textOf, type ParsedWord } from './understand-word.ts'

/** Rules for commands. A rule is a program and its first arguments, such as `git log`; `*` matches anything. */
export type CommandRules = {
  readonly allow?: readonly string[]
  readonly block?: readonly string[]
  readonly ask?: readonly string[]
}

export type Rule = {
  /** For messages: `allow "git log"`. */
  readonly name: string
  readonly words: readonly string[]
}

export type Rules = { readonly allow: readonly Rule[]; readonly block: readonly Rule[]; readonly ask: readonly Rule[] }

/** Parses rules. Throws on a rule that can never match. */
export function readRules(rules: CommandRules): Rules {
  checkOptions('bash', rules, ['allow', 'block', 'ask'])
  return {
    allow: readList('allow', rules.allow),
    block: readList('block', rules.block),
    ask: readList('ask', rules.ask),
  }
}

function readList(kind: keyof CommandRules, list: readonly string[] = []): readonly Rule[] {
  return list.map((text) => readRule(kind, text))
}

/** Characters that are not part of a plain word in a shell. */
const SHELL_SYNTAX = /[;&|<>()`$"'\\]|\p{C}/u

function readRule(kind: keyof CommandRules, text: string): Rule {
  const invalid = (why: string) => invalidOption('bash', `${kind} rule ${JSON.stringify(text)}: ${why}`, text)
  const words = text.split(/\s+/).filter((word) => word !== '')
  const [program] = words
  if (program === undefined) throw invalid('it is empty')
  if (SHELL_SYNTAX.test(text.replace(/\s/g, '')))
    throw invalid('a rule is plain words, such as "npm run *". Each command of a chain is judged separately')
  if (/^-|^\w+\+?=/.test(program))
    throw invalid('it must start with the name of a program, not with a variable or an option')
  // A rule that blocks or asks matches with any words after its own, and with none.
  const isOpen = kind !== 'allow' && words.length > 1 && words.at(-1) === '**'
  return { name: `${kind} "${words.join(' ')}"`, words: isOpen ? words.slice(0, -1) : words }
}

/**
 * Whether an allow rule matches a command, word for word from the start. A program with a slash is matched only by a rule with
 * the same slashes: `./ls` is not `ls`.
 */
export function allowMatches({ words }: Rule, command: readonly ParsedWord[]): boolean {
  if (words.length > command.length || command[0]!.loose.includes('=')) return false
  return words.every((pattern, index) => {
    const { value } = command[index]!
    if (value === null) return false
    return index === 0 ? matchesProgram(pattern, value) : matchesWildcard(value, pattern)
  })
}

function matchesProgram(pattern: string, program: string): boolean {
  const [patterns, parts] = [pattern.split('/'), program.split('/')]
  return patterns.length === parts.length && patterns.every((each, index) => matchesWildcard(parts[index]!, each))
}

/** Whether the pattern of an allow rule names a word explicitly, which a lone `*` does not. */
export function isNamedBy(pattern: string | undefined, { value }: ParsedWord): boolean {
  if (pattern === undefined || value === null) return false
  if (!pattern.includes('*')) return pattern === value
  const known = pattern.slice(0, pattern.indexOf('*'))
  if (/(?:^|\/)\.\.(?:\/|$)/.test(value)) return false // it leaves the folder that the pattern names
  return value.startsWith('-') ? known.endsWith('=') : known !== ''
}

/** A rule that names these words, or undefined if it cannot be written. */
export function ruleFor(words: readonly ParsedWord[]): string | undefined {
  const isPlain = words.every(
    ({ value }) => value !== null && value !== '' && !/[\s*]/.test(value) && !SHELL_SYNTAX.test(value),
  )
  return isPlain ? words.map(({ value }) => value).join(' ') : undefined
}

/**
 * The first block or ask rule that matches a command: by the base name of the program, with any options between the words of the rule,
 * and with its options in any order and form.
 */
export function broadMatch(rules: readonly Rule[], words: readonly ParsedWord[]): Rule | undefined {
  if (rules.length === 0 || words[0] === undefined) return undefined
  const names = namesOf(words[0])
  return rules.find(({ words: [program = '', ...rest] }) => {
    if (!names.some((name) => matchesName(baseName(program), name))) return false
    if (rest.length === 0) return true
    const [options, wanted] = [rest.filter(isOption), rest.filter((word) => !isOption(word))]
    const isNoFlag = (arg: string): boolean => grammarOf(baseName(program))?.options.get(arg)?.values !== 0
    const matches = (args: readonly string[]): boolean =>
      options.every((option) => hasOption(args, option)) && hasInOrder(args.filter(isNoFlag), wanted)
    return matches(words.slice(1).map(textOf))
  })
}

const isOption = (word: string): boolean => word.length > 1 && word.startsWith('-')

/** `rm` for `/bin/rm`, and for `RM.EXE`: some file systems ignore case. */
export function baseName(program: string): string {
  const name = program.slice(program.lastIndexOf('/') + 1).toLowerCase()
  return name.endsWith('.exe') ? name.slice(0, -4) : name
}

/** The possible names of a program. A word with expansions may be any of its parts. */
function namesOf({ value, loose }: ParsedWord): readonly (string | Glob)[] {
  if (value !== null) return [baseName(value)]
  const pieces = loose.slice(0, MAX_LOOSE).split(/[^\w./+:[-]+/)
  const glob =
    loose.length <= MAX_LOOSE && /[*?[]/.test(loose) ? [{ glob: baseName(loose.replace(/\[[^\]]*\]/g, '?')) }] : []
  return [...pieces.filter((piece) => piece !== '').map(baseName), ...glob]
}

/** A pattern that may match many names. */
type Glob = { readonly glob: string }

const MAX_LOOSE = 1000

function matchesName(pattern: string, name: string | Glob): boolean {
  if (typeof name === 'string') return matchesWildcard(name, pattern)
  return !/^[*?]*$/.test(name.glob) && matchesWildcard(pattern, name.glob, '?')
}

const synonyms: readonly (readonly string[])[] = [
  ['r', 'R', 'recursive'],
  ['f', 'force'],
  ['i', 'in-place'],
]

function hasOption(args: readonly string[], wanted: string): boolean {
  if (args.some((arg) => matchesWildcard(arg, wanted) || isLongForm(arg, wanted))) return true
  const letters = /^-([a-zA-Z]{1,3})$/.exec(wanted)?.[1]
  const names = letters === undefined ? [wanted.replace(/^-+/, '')] : letters.split('')
  return names.every((name) => {
    const same = synonyms.find((group) => group.includes(name)) ?? (letters === undefined ? [] : [name])
    return same.some((other) => args.some((arg) => isGiven(arg, other)))
  })
}

/** `--force=x` and the abbreviations `--forc` and `--f` mean `--force`. */
function isLongForm(arg: string, wanted: string): boolean {
  if (!wanted.startsWith('--')) return false
  const name = arg.split('=')[0]!
  return name.length > 2 && wanted.startsWith(name)
}

function isGiven(arg: string, name: string): boolean {
  if (name.length > 1) return isLongForm(arg, `--${name}`)
  return /^-[a-zA-Z]{1,6}$/.test(arg) && arg.includes(name)
}

/** How far to search for the next word of a rule. */
const MAX_GAP = 64

/** Whether the words occur in this order, with only options and their possible values between them. */
function hasInOrder(args: readonly string[], wanted: readonly string[]): boolean {
  let starts = new Set([0])
  for (const pattern of wanted) {
    const next = new Set<number>()
    for (const start of [...starts].slice(0, MAX_GAP)) {
      for (let at = start; at < Math.min(args.length, start + MAX_GAP); at += 1) {
        if (matchesWildcard(args[at]!, pattern)) next.add(at + 1)
        const belongs = at > start && isOption(args[at - 1]!) && !args[at - 1]!.includes('=')
        if (!isOption(args[at]!) && !belongs) break
      }
    }
    if (next.size === 0) return false
    starts = next
  }
  return true
}
