/** Why a text is blocked or needs approval before it is parsed. */
type Suspicion = { readonly verdict: 'ask' | 'block'; readonly rule: string }

/** Limits keep judging fast, and no approver reads more. */
const MAX_LENGTH = 30_000
const MAX_BRACKETS = 50

/** Why a text is too large or too complex to parse. */
export function sizeProblem(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`
  return depthOf(text) > MAX_BRACKETS ? `it has more than ${MAX_BRACKETS} nested brackets` : undefined
}

/** The deepest nesting of brackets, ignoring quotes. */
function depthOf(text: string): number {
  let [depth, deepest] = [0, 0]
  for (const [bracket] of text.matchAll(/[()[\]{}]/g)) {
    depth = Math.max(0, depth + ('([{'.includes(bracket) ? 1 : -1))
    deepest = Math.max(deepest, depth)
  }
  return deepest
}

/** Characters that are invisible, or that shells and terminals read differently. */
export function suspicionIn(text: string): Suspicion | undefined {
  const control = /[^\P{Cc}\t\n]/u.exec(text)?.[0]
  if (control !== undefined) return { verdict: 'block', rule: `it contains the control character ${codeOf(control)}` }
  const hidden = HIDDEN.exec(text.replace(JOINED_EMOJI, ''))?.[0]
  if (hidden !== undefined) return { verdict: 'ask', rule: `it contains the invisible character ${codeOf(hidden)}` }
  return undefined
}

/** Format characters, lone surrogates, private use, unusual spaces, and line ends other than LF. */
const HIDDEN = /[\p{Cf}\p{Cs}\p{Co}]|\p{Default_Ignorable_Code_Point}(?<!\uFE0F)|[^\S \t\n]/u

/** Joined emoji contain an invisible joiner. */
const JOINED_EMOJI = /(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]*)\u200D(?=\p{Extended_Pictographic})/gu

function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
