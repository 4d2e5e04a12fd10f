import { stripVTControlCharacters } from 'node:util'

/**
 * A line that is wider than the terminal, broken at blanks, with the other lines indented. A terminal would break it within
 * words and start the next line at its edge. A word that is wider than the terminal stays whole.
 */
export function wrap(line: string, width: number, indent: number): string {
  if (lengthOf(line) <= width) return line
  const [, start = '', rest = ''] = /^(\s*)(.*)$/s.exec(line) ?? []
  const margin = ' '.repeat(indent)
  const lines: string[] = []
  let current = start
  let isEmpty = true
  for (const word of rest.split(/(?<=\S)(?= )/)) {
    const fits = lengthOf(current) + lengthOf(word) <= width
    if (isEmpty || fits) current += word
    else {
      lines.push(current)
      current = margin + word.trimStart()
    }
    isEmpty = false
  }
  return [...lines, current].join('\n')
}

/** The text of `explain`, broken for a terminal. Command lines to copy stay whole. */
export function wrapExplanation(text: string, columns: number | undefined): string {
  if (columns === undefined) return text
  const indentOf = (line: string): number => 15 + (/^ {15}(\s*)/.exec(line)?.[1]?.length ?? 0)
  return text
    .split('\n')
    .map((line) =>
      /^ {2}to continue /.test(line) ? line : wrap(line, columns, line.startsWith(' ') ? indentOf(line) : 0),
    )
    .join('\n')
}

function lengthOf(text: string): number {
  return stripVTControlCharacters(text).length
}
