import { stripVTControlCharacters } from 'node:util'
import { escapeInvisible, withoutControls } from '../../system/sanitize-text.ts'

// Models and tools write to the terminal, where control characters are commands: they set colours and the title, move the
// cursor over earlier output, or write to the clipboard.

/**
 * A text without control characters, except tab and newline, and without characters that change the direction of text or are
 * letters without a shape. Each part of a text can be treated separately.
 */
export function printable(text: string): string {
  return withoutControls(text)
}

// oxlint-disable-next-line no-control-regex
const COLORS = /(\u001B\[[\d;]*m)/

/** The same for a line that has colours, which stay. */
export function printableLine(line: string): string {
  return line
    .split(COLORS)
    .map((part, i) => (i % 2 === 1 ? part : printable(part)))
    .join('')
}

/** A text on one line, cut at a maximum length. */
export function oneLine(text: string, max = Infinity): string {
  const enough = text.slice(0, Math.max(1000, 4 * max)) // a result may be very long
  const line = printable(stripVTControlCharacters(enough)).replace(/\s+/g, ' ').trim()
  return line.length <= max && enough.length === text.length ? line : `${line.slice(0, max - 1).trimEnd()}…`
}

/** A text with control and invisible characters escaped, for a user who must see exactly what it contains. */
export function exact(text: string): string {
  return escapeInvisible(text)
}
