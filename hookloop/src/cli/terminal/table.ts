/** A cell: what stands in it, and how it is painted once its width is known. */
export type Cell = { readonly text: string; readonly paint?: (text: string) => string }

const GAP = '  '

/** Rows with their columns below each other. What ends a row is not padded, so that nothing ends in blanks. */
export function table(rows: readonly (readonly Cell[])[]): string {
  const widths = columnWidths(rows)
  return rows.map((row) => rowWords(row, widths)).join('\n')
}

/** How many characters its widest row may take. */
export function widthOf(rows: readonly (readonly Cell[])[]): number {
  const widths = columnWidths(rows)
  return widths.reduce((sum, width) => sum + width, (widths.length - 1) * GAP.length)
}

function columnWidths(rows: readonly (readonly Cell[])[]): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => row[i]?.text.length ?? 0)))
}

function rowWords(row: readonly Cell[], widths: readonly number[]): string {
  const last = row.findLastIndex(({ text }) => text !== '')
  const cells = row.slice(0, last + 1).map(({ text, paint = String }, i) => {
    return `${paint(text)}${i === last ? '' : ' '.repeat(widths[i]! - text.length)}`
  })
  return cells.join(GAP)
}
