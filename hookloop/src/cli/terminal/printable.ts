import { stripVTControlCharacters } from 'node:util'

// What models and tools write reaches a terminal. There, control characters are commands: they recolour, move the
// cursor over what was written before, set the title, or put text on the clipboard.

/** Every control character except tab and newline. */
const CONTROLS = /[^\P{Cc}\t\n]/gu

/** Characters that make a text look different from what it is: they cannot be seen, or turn its direction. */
const INVISIBLE = /\p{Cf}/gu

/** A text without anything that a terminal would obey. Lines and tabs stay. It makes no difference how it was cut. */
export function printable(text: string): string {
  return text.replace(CONTROLS, '')
}

/** A text on one line, cut where it gets too long. */
export function oneLine(text: string, max = Infinity): string {
  const enough = text.slice(0, Math.max(1000, 4 * max)) // a result may have megabytes
  const line = printable(stripVTControlCharacters(enough)).replace(/\s+/g, ' ').trim()
  return line.length <= max && enough.length === text.length ? line : `${line.slice(0, max - 1).trimEnd()}…`
}

/** A text with everything that cannot be seen made visible, for whoever must know exactly what it says. */
export function exact(text: string): string {
  return text.replace(CONTROLS, escaped).replace(INVISIBLE, escaped)
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}
