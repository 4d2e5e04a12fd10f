import { isJsonObject, type Json } from '../../data/json.ts'

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
  const bare = text.trim().replace(/^```(?:json)?\s*\n?([\s\S]*?)\n?```$/, '$1')
  const fenced = bare === text.trim() ? undefined : parseJson(bare)
  if (isJsonObject(fenced)) return { input: fenced, mended: 'they were in a code fence' }
  const tidy = parseJson(tidied(bare))
  return isJsonObject(tidy) ? { input: tidy, mended: 'they were not quite JSON' } : { input: text }
}

/** Without commas before a closing bracket and with control characters in texts escaped, looking at strings as strings. */
function tidied(text: string): string {
  return text.replace(/"(?:[^"\\]|\\[\s\S])*"|,(?=\s*[}\]])/g, (match) => (match === ',' ? '' : escaped(match)))
}

function escaped(quoted: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return quoted.replace(/[\u0000-\u001f]/g, (character) => JSON.stringify(character).slice(1, -1))
}

/** What JSON says, or nothing when it is none. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
