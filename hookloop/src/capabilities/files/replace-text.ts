/** The new text, undefined if it would be too long, and how many places were replaced. */
export type Replaced = { readonly text: string | undefined; readonly places: number }

type Replacement = {
  readonly find: string
  readonly put: string
  readonly all: boolean
  readonly maxLength: number
}

const MAX_COUNTED = 1_000
const MAX_LINES_SHOWN = 10

/**
 * Replaces text literally, and only if it is clear which place is meant. In a text whose lines all end with CRLF, line ends
 * in both strings are read as CRLF.
 */
export function replaceText(text: string, { find, put, all, maxLength }: Replacement): Replaced {
  if (find === '') throw new Error('old_string is empty. To create a file, use write_file.')
  if (find === put) throw new Error('old_string and new_string are the same, so nothing would change.')
  const crlf = text.includes('\n') && !/(?<!\r)\n/.test(text)
  const [wanted, given] = crlf ? [toCrlf(find), toCrlf(put)] : [find, put]
  const places = placesOf(text, wanted)
  if (places.length === 0) throw new Error(`old_string was not found, so the file was not changed.${hint(text, find)}`)
  if (!all && places.length > 1) throw new Error(`${ambiguous(text, places)} The file was not changed.`)
  if (!all) {
    const [at] = places as [number]
    return { text: text.slice(0, at) + given + text.slice(at + wanted.length), places: 1 }
  }
  const count = countOf(text, wanted)
  const tooLong = text.length + count * (given.length - wanted.length) > maxLength
  return { text: tooLong ? undefined : text.replaceAll(wanted, () => given), places: count }
}

/** The number of places without overlaps. */
export function countOf(text: string, wanted: string): number {
  let count = 0
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) count++
  return count
}

/** All places, including those that overlap: either might be meant. */
function placesOf(text: string, wanted: string): readonly number[] {
  const places: number[] = []
  for (let at = text.indexOf(wanted); at !== -1 && places.length < MAX_COUNTED; at = text.indexOf(wanted, at + 1)) {
    places.push(at)
  }
  return places
}

function ambiguous(text: string, places: readonly number[]): string {
  const count = places.length === MAX_COUNTED ? `${MAX_COUNTED} or more` : String(places.length)
  const lines = places.slice(0, MAX_LINES_SHOWN).map((at) => countOf(text.slice(0, at), '\n') + 1)
  const more = places.length > MAX_LINES_SHOWN ? ', …' : ''
  return `old_string was found in ${count} places (lines ${lines.join(', ')}${more}). Include more of the surrounding text, or set replace_all.`
}

function hint(text: string, find: string): string {
  if (/^ *\d+\t/.test(find)) return ' The line numbers of read_file and the tab after them are not part of the file.'
  const trimmed = find.trim()
  if (trimmed !== '' && text.includes(trimmed)) return ' It occurs with different white space around it.'
  return ' Read the file again and copy the text exactly, including white space.'
}

function toCrlf(text: string): string {
  return text.replaceAll(/\r?\n/g, '\r\n')
}
