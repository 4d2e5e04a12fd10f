import { isJsonObject, type Json } from '../../state/json.ts'

/** What a model wrote as the arguments of a call. */
export type ReadArguments = {
  /** The arguments, or the text itself when it is not JSON: the call then fails, and the model is told. */
  readonly input: Json
  /** Set when they had to be mended first, to what was wrong. */
  readonly mended?: string
}

/**
 * Reads arguments, and mends once what is certainly meant: a code fence around them, JSON inside a JSON string, a comma
 * too many, a line break inside a text. What was cut off is never completed: half of a command is another command.
 */
export function readArguments(text: unknown): ReadArguments {
  if (typeof text !== 'string') return { input: (text ?? {}) as Json }
  if (text.trim() === '') return { input: {} }
  const read = parseJson(text)
  if (read === undefined) return mend(text)
  if (typeof read !== 'string') return { input: read }
  const inner = parseJson(read)
  return isJsonObject(inner) ? { input: inner, mended: 'they were JSON inside a JSON text' } : { input: read }
}

function mend(text: string): ReadArguments {
  const trimmed = text.trim()
  const bare = withoutFence(trimmed)
  const fenced = bare === trimmed ? undefined : parseJson(bare)
  if (isJsonObject(fenced)) return { input: fenced, mended: 'they were in a code fence' }
  const tidy = parseJson(tidied(bare))
  return isJsonObject(tidy) ? { input: tidy, mended: 'they were not quite JSON' } : { input: text }
}

function withoutFence(text: string): string {
  if (!text.startsWith('```') || !text.endsWith('```') || text.length < 6) return text
  const inner = text.slice(3, -3)
  return (inner.startsWith('json') ? inner.slice(4) : inner).trim()
}

/**
 * Without commas before a closing bracket and with control characters in texts escaped, looking at strings as strings.
 * Walked through once and without a pattern: what a model writes may be long, and made to be slow to match.
 */
function tidied(text: string): string {
  const kept: string[] = []
  let from = 0 // what has been looked at, but not kept yet
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (isInText && character === '\\') {
      at++
    } else if (character === '"') {
      isInText = !isInText
    } else if (isInText ? character < ' ' : character === ',' && closesNext(text, at + 1)) {
      kept.push(text.slice(from, at), isInText ? JSON.stringify(character).slice(1, -1) : '')
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

/** What JSON says, or nothing when it is none. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
