/** A word of a command that a rule must name itself, and why. */
export type Danger = { readonly index: number; readonly why: string }

/** The options that a program may have without being named by a rule: all others are dangers. */
export type SafeOptions = {
  /** Letters of options that take no value. */
  readonly flags?: string
  /** Letters of options that take a value. */
  readonly valued?: string
  /** Long options, without their values. */
  readonly long?: readonly string[]
}

/** The options of a program that run something or write. */
export type UnsafeOptions = { readonly letters?: string; readonly long?: readonly string[] }

/** Every option that is not known to be harmless. Long ones must be written out. */
export function optionsBut({ flags = '', valued = '', long = [] }: SafeOptions, argv: readonly string[]): Danger[] {
  const dangers: Danger[] = []
  for (let index = 1; index < argv.length; index += 1) {
    const word = argv[index]!
    if (word === '--') break
    if (word === '-' || !word.startsWith('-')) continue
    const taken = word.startsWith('--') ? knownLong(long, word) : knownLetters({ flags, valued }, word)
    if (taken === undefined) dangers.push({ index, why: `${shown(word)} is not known to be harmless` })
    else index += taken
  }
  return dangers
}

function knownLong(long: readonly string[], word: string): 0 | undefined {
  return long.includes(word.slice(2).split('=')[0]!) ? 0 : undefined
}

/** How many further words a cluster of letters takes, or undefined when one is not known. */
function knownLetters(
  { flags, valued }: Required<Pick<SafeOptions, 'flags' | 'valued'>>,
  word: string,
): 0 | 1 | undefined {
  for (let at = 1; at < word.length; at += 1) {
    if (valued.includes(word[at]!)) return at === word.length - 1 ? 1 : 0
    if (!flags.includes(word[at]!)) return undefined
  }
  return 0
}

/** Every option of a list, also abbreviated, in a cluster, or with its value attached. */
export function optionsOf({ letters = '', long = [] }: UnsafeOptions, argv: readonly string[]): Danger[] {
  const dangers: Danger[] = []
  for (let index = 1; index < argv.length; index += 1) {
    const word = argv[index]!
    if (word === '--') break
    if (isUnsafe(word, letters, long)) dangers.push({ index, why: `${shown(word)} runs something or writes` })
  }
  return dangers
}

function isUnsafe(word: string, letters: string, long: readonly string[]): boolean {
  if (!word.startsWith('--')) return /^-[^-]/.test(word) && letters.split('').some((letter) => word.includes(letter))
  const name = word.slice(2).split('=')[0]!
  return name !== '' && long.some((each) => each.startsWith(name))
}

/** The words that are no options, as places. What an option takes counts as well. */
export function operandsOf(argv: readonly string[]): readonly number[] {
  const end = argv.indexOf('--')
  return [...argv.keys()].slice(1).filter((index) => {
    const word = argv[index]!
    return index !== end && ((end !== -1 && index > end) || word === '-' || !word.startsWith('-'))
  })
}

export function shown(word: string): string {
  return word.length <= 40 ? word : `${word.slice(0, 40)}…`
}
