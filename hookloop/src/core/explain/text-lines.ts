import { shorten } from '../../values/text.ts'

/** How many lines a section has without `verbose`. */
export const MAX_LINES = 10

const MAX_CHARS = 300

/** A text on one line, shortened unless `verbose`. */
export function lineOf(text: string, verbose: boolean): string {
  const line = text.replaceAll(/\s*\n\s*/g, ' ⏎ ')
  return verbose ? line : shorten(line, MAX_CHARS)
}

/** Texts that differ only in their steps are counted: the first one has the number, at the end of its first line. */
export function counted(texts: readonly string[]): readonly string[] {
  const found = Map.groupBy(texts, (text) => text.replaceAll(/^ *(after )?step \d+/gm, ''))
  return [...found.values()].map(([first, ...more]) =>
    more.length === 0 ? first! : first!.replace(/(?=\n)|$/, ` (${more.length + 1} times)`),
  )
}

/** The lines, or the first of them and how many more there are. */
export function capped(all: readonly string[], total = all.length): readonly string[] {
  if (total <= MAX_LINES) return all
  const shown = all.slice(0, MAX_LINES - 1)
  return [...shown, `… and ${total - shown.length} more, with verbose`]
}
