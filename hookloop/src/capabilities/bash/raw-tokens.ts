import type { SeenWord } from './commands-in.ts'

/**
 * Every run of words in a text that nobody can parse, as if each were a command. Quotes are taken as nothing, then as
 * separators. Good for finding what is denied: bash runs the lines before the one it cannot read.
 */
export function* rawCommands(text: string): Generator<readonly SeenWord[]> {
  const joined = text.slice(0, MAX_LENGTH).replace(/\\\n/g, '')
  for (const instead of ['', ' ']) {
    const tokens = joined.replace(/["'\\]/g, instead).split(/[\s;&|()<>{}`$=,!]+/)
    const words = tokens.filter((word) => word !== '').map((word) => ({ value: word, loose: word }))
    for (const index of words.keys()) yield words.slice(index, index + MAX_WORDS)
  }
}

/** What is longer is refused anyhow. */
const MAX_LENGTH = 200_000

/** No rule is longer than what is looked at. */
const MAX_WORDS = 16
