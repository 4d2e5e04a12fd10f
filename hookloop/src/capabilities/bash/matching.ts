import type { SeenWord } from './commands-in.ts'
import { matchesPattern, type Rule } from './rules.ts'

/**
 * Whether an allow rule covers a command: word for word from the beginning. A name with a slash is matched only by a
 * rule with the same slashes: `./ls` is not `ls`.
 */
export function allowMatches({ words }: Rule, argv: readonly string[]): boolean {
  if (words.length > argv.length || argv[0]!.includes('=')) return false
  return words.every((pattern, index) => {
    const word = argv[index]!
    return index === 0 ? matchesProgram(pattern, word) : matchesPattern(pattern, word)
  })
}

function matchesProgram(pattern: string, program: string): boolean {
  const [patterns, parts] = [pattern.split('/'), program.split('/')]
  return patterns.length === parts.length && patterns.every((each, index) => matchesPattern(each, parts[index]!))
}

/** Whether an allow rule says itself what stands at this place of the command, which a lone `*` does not. */
export function isNamedBy({ words }: Rule, argv: readonly string[], index: number): boolean {
  const [pattern, word] = [words[index], argv[index]]
  if (pattern === undefined || word === undefined) return false
  if (!pattern.includes('*')) return pattern === word
  const known = pattern.slice(0, pattern.indexOf('*'))
  return word.startsWith('-') ? known.endsWith('=') : known !== ''
}

/**
 * The first deny or ask rule that speaks of a command: by the name of the program wherever it lies, whatever options
 * stand between the words of the rule, and whatever the order of its options.
 */
export function broadMatch(rules: readonly Rule[], words: readonly SeenWord[]): Rule | undefined {
  if (rules.length === 0 || words[0] === undefined) return undefined
  const names = namesOf(words[0])
  return rules.find(({ words: [program = '', ...rest] }) => {
    if (!names.some((name) => matchesName(baseName(program), name))) return false
    if (rest.length === 0) return true
    const args = words.slice(1).map(({ value, loose }) => value ?? loose)
    const options = rest.filter(isOption)
    return options.every((option) => hasOption(args, option)) && hasInOrder(args, rest.filter(isNoOption))
  })
}

const isOption = (word: string): boolean => word.length > 1 && word.startsWith('-')
const isNoOption = (word: string): boolean => !isOption(word)

/** `rm` for `/bin/rm`, and `RM.EXE` where file names have no case. */
export function baseName(program: string): string {
  const name = program.slice(program.lastIndexOf('/') + 1).toLowerCase()
  return name.endsWith('.exe') ? name.slice(0, -4) : name
}

/** What a word in the place of a program may stand for. One that expands stands for any of its pieces. */
function namesOf({ value, loose }: SeenWord): readonly (string | Glob)[] {
  if (value !== null) return [baseName(value)]
  const pieces = loose.slice(0, MAX_LOOSE).split(/[^\w./+:[-]+/)
  const glob =
    loose.length <= MAX_LOOSE && /[*?[]/.test(loose) ? [{ glob: baseName(loose.replace(/\[[^\]]*\]/g, '?')) }] : []
  return [...pieces.filter((piece) => piece !== '').map(baseName), ...glob]
}

/** A name that may be many. */
type Glob = { readonly glob: string }

const MAX_LOOSE = 1000

function matchesName(pattern: string, name: string | Glob): boolean {
  if (typeof name === 'string') return matchesPattern(pattern, name)
  return !/^[*?]*$/.test(name.glob) && matchesPattern(name.glob, pattern, { one: '?' })
}

const synonyms: readonly (readonly string[])[] = [
  ['r', 'R', 'recursive'],
  ['f', 'force'],
  ['i', 'in-place'],
]

function hasOption(args: readonly string[], wanted: string): boolean {
  if (args.some((arg) => matchesPattern(wanted, arg) || isLongForm(arg, wanted))) return true
  const letters = /^-([a-zA-Z]{1,3})$/.exec(wanted)?.[1]
  const names = letters === undefined ? [wanted.replace(/^-+/, '')] : letters.split('')
  return names.every((name) => {
    const same = synonyms.find((group) => group.includes(name)) ?? (letters === undefined ? [] : [name])
    return same.some((other) => args.some((arg) => isGiven(arg, other)))
  })
}

/** `--force=x` and the abbreviation `--forc` are `--force`. */
function isLongForm(arg: string, wanted: string): boolean {
  if (!wanted.startsWith('--')) return false
  const name = arg.split('=')[0]!
  return name.length >= 4 && wanted.startsWith(name)
}

function isGiven(arg: string, name: string): boolean {
  if (name.length > 1) return isLongForm(arg, `--${name}`)
  return /^-[a-zA-Z]{1,6}$/.test(arg) && arg.includes(name)
}

/** How far the next word of a rule is looked for. */
const MAX_GAP = 64

/** Whether the words stand in this order, with nothing between them but options and what may belong to these. */
function hasInOrder(args: readonly string[], wanted: readonly string[]): boolean {
  let starts = new Set([0])
  for (const pattern of wanted) {
    const next = new Set<number>()
    for (const start of [...starts].slice(0, MAX_GAP)) {
      for (let at = start; at < Math.min(args.length, start + MAX_GAP); at += 1) {
        if (matchesPattern(pattern, args[at]!)) next.add(at + 1)
        const belongs = at > start && isOption(args[at - 1]!) && mayTakeValue(args[at - 1]!)
        if (!isOption(args[at]!) && !belongs) break
      }
    }
    if (next.size === 0) return false
    starts = next
  }
  return true
}

const flags: ReadonlySet<string> = new Set([
  '--no-pager',
  '-P',
  '-p',
  '--paginate',
  '--bare',
  '--no-optional-locks',
  '--silent',
  '-s',
  '--quiet',
  '-q',
  '--verbose',
  '-v',
  '-y',
  '--yes',
])

function mayTakeValue(option: string): boolean {
  return !option.includes('=') && !flags.has(option)
}
