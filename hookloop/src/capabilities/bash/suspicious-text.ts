/** Why a text is refused or doubted before it is read as a command. */
export type Suspicion = { readonly verdict: 'ask' | 'deny'; readonly rule: string }

/** How long a command may be, and how often what nests may begin in it: parsing must stay fast. */
const MAX_LENGTH = 65_536
const MAX_OPENINGS = 256
const MAX_BRACES = 1500

/** Whether a text is too much to be parsed. */
export function tooMuch(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`
  if (countOf(text, /[$<>][({]|`|<<|\$\[/g) > MAX_OPENINGS) return `it has more than ${MAX_OPENINGS} expansions`
  if (countOf(text, /[{([]/g) > MAX_BRACES) return `it has more than ${MAX_BRACES} brackets`
  return undefined
}

function countOf(text: string, pattern: RegExp): number {
  let count = 0
  for (const _ of text.matchAll(pattern)) count += 1
  return count
}

/** Characters that a reader does not see, or that shells and terminals read in different ways. */
export function suspicionIn(text: string): Suspicion | undefined {
  const control = /[^\P{Cc}\t\n]/u.exec(text)?.[0]
  if (control !== undefined) return { verdict: 'deny', rule: `it contains the control character ${codeOf(control)}` }
  const hidden = HIDDEN.exec(text.replace(JOINED_EMOJI, ''))?.[0]
  if (hidden !== undefined) return { verdict: 'ask', rule: `it contains ${codeOf(hidden)}, which cannot be seen` }
  return undefined
}

/** Format characters, lone surrogates, private ones, spaces other than the usual one, and line ends other than LF. */
const HIDDEN = /[\p{Cf}\p{Cs}\p{Co}]|\p{Default_Ignorable_Code_Point}(?<!\uFE0F)|[^\S \t\n]/u

/** A family is one picture made of several. */
const JOINED_EMOJI = /(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]*)\u200D(?=\p{Extended_Pictographic})/gu

function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
