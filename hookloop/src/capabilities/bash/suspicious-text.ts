/** Why a text is refused or doubted before it is read as a command. */
export type Suspicion = { readonly verdict: 'ask' | 'deny'; readonly rule: string }

/** Linux hands no longer text to a program. */
const MAX_LENGTH = 131_072
/** How deep brackets may be within each other, and how many here-documents there may be: parsing must stay fast. */
const MAX_BRACKETS = 100
const MAX_DOCUMENTS = 200

/** Whether a text is too much to be parsed. */
export function tooMuch(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`
  if (depthOf(text) > MAX_BRACKETS) return `it has brackets more than ${MAX_BRACKETS} deep`
  if (text.split('<<').length > MAX_DOCUMENTS) return `it has more than ${MAX_DOCUMENTS} here-documents`
  return undefined
}

/** How many brackets are open at once at most, whatever stands in quotes. */
function depthOf(text: string): number {
  let [depth, deepest] = [0, 0]
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!
    if (character === '(' || character === '{' || character === '[') depth += 1
    else if (character === ')' || character === '}' || character === ']') depth = Math.max(0, depth - 1)
    deepest = Math.max(deepest, depth)
  }
  return deepest
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
