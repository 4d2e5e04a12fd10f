/** A word of a command that a rule must name explicitly, and why. */
export type Danger = { readonly index: number; readonly why: string }

/** The options that a rule need not name: all others are dangers. */
export type SafeOptions = {
  /** Letters of options without a value. */
  readonly flags?: string
  /** Letters of options that take a value. */
  readonly valued?: string
  /** Long options, without their values. */
  readonly long?: readonly string[]
}

/** The options of a program that run commands or write files. */
export type UnsafeOptions = {
  readonly letters?: string
  /** Letters of safe options that take the rest of the word as their value. */
  readonly valued?: string
  readonly long?: readonly string[]
}

/** Every option that is not known to be safe. Long ones must be written out. */
export function optionsBut({ flags = '', valued = '', long = [] }: SafeOptions, argv: readonly string[]): Danger[] {
  const dangers: Danger[] = []
  for (let index = 1; index < argv.length; index += 1) {
    const word = argv[index]!
    // After an option it may be the value of that option, and more options follow.
    if (word === '--' && !(index > 1 && argv[index - 1]!.startsWith('-'))) break
    if (word === '-' || word === '--' || !word.startsWith('-')) continue
    const taken = word.startsWith('--') ? knownLong(long, word) : wordsTaken({ flags, valued }, word)
    if (taken === undefined) dangers.push({ index, why: `${shown(word)} is not known to be safe` })
    else index += taken
  }
  return dangers
}

function knownLong(long: readonly string[], word: string): 0 | undefined {
  return long.includes(word.slice(2).split('=')[0]!) ? 0 : undefined
}

/** How many further words a cluster of letters takes as values; undefined if a letter is unknown. */
export function wordsTaken(
  { flags = '', valued = '' }: { readonly flags?: string; readonly valued?: string },
  word: string,
): 0 | 1 | undefined {
  for (let at = 1; at < word.length; at += 1) {
    if (valued.includes(word[at]!)) return at === word.length - 1 ? 1 : 0
    if (!flags.includes(word[at]!)) return undefined
  }
  return 0
}

/** Every unsafe option, also abbreviated, in a cluster, or with its value attached. */
export function optionsOf(unsafe: UnsafeOptions, argv: readonly string[]): Danger[] {
  return argv.flatMap((word, index) =>
    index > 0 && isUnsafe(word, unsafe) ? [{ index, why: `${shown(word)} runs commands or writes files` }] : [],
  )
}

function isUnsafe(word: string, { letters = '', valued = '', long = [] }: UnsafeOptions): boolean {
  if (!word.startsWith('--')) {
    const cluster = word.startsWith('-') ? word.slice(1).split('') : []
    const end = cluster.findIndex((letter) => valued.includes(letter))
    return cluster.slice(0, end === -1 ? cluster.length : end).some((letter) => letters.includes(letter))
  }
  const name = word.slice(2).split('=')[0]!
  return name !== '' && long.some((each) => each.startsWith(name))
}

/** The indexes of words that are not options. Values of options count too. */
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
