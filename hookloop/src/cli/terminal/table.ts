/** A cell: its text, and how to colour it after its width was measured. */
export type Cell = { readonly text: string; readonly paint?: (text: string) => string }

const GAP = '  '

/** Rows with aligned columns. No line ends with blanks. */
export function table(rows: readonly (readonly Cell[])[]): string {
  const widths = columnWidths(rows)
  return rows.map((row) => rowText(row, widths)).join('\n')
}

/** The width of the widest possible row. */
export function widthOf(rows: readonly (readonly Cell[])[]): number {
  const widths = columnWidths(rows)
  return widths.reduce((sum, width) => sum + width, (widths.length - 1) * GAP.length)
}

function columnWidths(rows: readonly (readonly Cell[])[]): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => row[i]?.text.length ?? 0)))
}

function rowText(row: readonly Cell[], widths: readonly number[]): string {
  const last = row.findLastIndex(({ text }) => text !== '')
  const cells = row.slice(0, last + 1).map(({ text, paint = String }, i) => {
    return `${paint(text)}${i === last ? '' : ' '.repeat(widths[i]! - text.length)}`
  })
  return cells.join(GAP)
}
