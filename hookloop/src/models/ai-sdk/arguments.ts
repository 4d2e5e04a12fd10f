import { inexactNumber, isJsonObject, type Json } from '../../values/json.ts'

/** The arguments of a call as the model wrote them. */
export type ReadArguments = {
  /** The arguments, or the text itself if it is not JSON: the call then fails with a message for the model. */
  readonly input: Json
  /** What was wrong with them, if they had to be repaired. */
  readonly repaired?: string
}

/**
 * Reads arguments and repairs what is unambiguous: a code fence around them, JSON inside a JSON string, a trailing comma,
 * a line break inside a string. Truncated arguments are never completed: half of a command is a different command.
 */
export function readArguments(text: unknown): ReadArguments {
  if (typeof text !== 'string') return { input: (text ?? {}) as Json }
  if (text.trim() === '') return { input: {} }
  const read = parseExact(text)
  if (read === undefined) return repair(text)
  if (typeof read !== 'string') return { input: read }
  const inner = parseExact(read)
  return isJsonObject(inner) ? { input: inner, repaired: 'they were JSON inside a JSON string' } : { input: read }
}

function repair(text: string): ReadArguments {
  const trimmed = text.trim()
  const bare = withoutFence(trimmed)
  const fenced = bare === trimmed ? undefined : parseExact(bare)
  if (isJsonObject(fenced)) return { input: fenced, repaired: 'they were in a code fence' }
  const tidy = parseExact(tidied(bare))
  return isJsonObject(tidy) ? { input: tidy, repaired: 'they were not valid JSON' } : { input: text }
}

function withoutFence(text: string): string {
  if (!text.startsWith('```') || !text.endsWith('```') || text.length < 6) return text
  const inner = text.slice(3, -3)
  return (inner.startsWith('json') ? inner.slice(4) : inner).trim()
}

/**
 * Removes trailing commas and escapes control characters inside strings. One pass without a regular expression: what a
 * model writes may be long, and written to be slow to match.
 */
function tidied(text: string): string {
  const kept: string[] = []
  let from = 0 // start of the part that is not copied yet
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (isInString && character === '\\') {
      at++
    } else if (character === '"') {
      isInString = !isInString
    } else if (isInString ? character < ' ' : character === ',' && closesNext(text, at + 1)) {
      kept.push(text.slice(from, at), isInString ? JSON.stringify(character).slice(1, -1) : '')
      from = at + 1
    }
  }
  kept.push(text.slice(from))
  return kept.join('')
}

function closesNext(text: string, from: number): boolean {
  let at = from
  while (at < text.length && ' \t\r\n'.includes(text[at]!)) at++
  return text[at] === '}' || text[at] === ']'
}

/** Arguments with a number that would be rounded, or may be rounded already, are not used: the text itself fails the call. */
function parseExact(text: string): Json | undefined {
  return inexactNumber(text) === undefined ? parseJson(text) : undefined
}

/** The value of a JSON text, or undefined if it is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
