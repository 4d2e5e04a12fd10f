import { stripVTControlCharacters } from 'node:util'

const GAP = '  '

/** Rows with aligned columns, whatever the colours of the cells. No line ends with blanks. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = columnWidths(rows)
  return rows.map((row) => rowText(row, widths)).join('\n')
}

/** The width of the widest possible row. */
export function widthOf(rows: readonly (readonly string[])[]): number {
  const widths = columnWidths(rows)
  return widths.reduce((sum, width) => sum + width, (widths.length - 1) * GAP.length)
}

function columnWidths(rows: readonly (readonly string[])[]): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => lengthOf(row[i] ?? ''))))
}

function rowText(row: readonly string[], widths: readonly number[]): string {
  const last = row.findLastIndex((cell) => lengthOf(cell) > 0)
  const cells = row.slice(0, last + 1)
  return cells.map((cell, i) => (i === last ? cell : cell + ' '.repeat(widths[i]! - lengthOf(cell)))).join(GAP)
}

function lengthOf(cell: string): number {
  return stripVTControlCharacters(cell).length
}
