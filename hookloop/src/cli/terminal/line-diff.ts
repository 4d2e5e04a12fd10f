const MAX_LINES = 2_000

/** The lines that differ between two texts: `-` was removed, `+` was added. */
export function lineDiff(before: string, after: string): readonly string[] {
  const [a, b] = [before.split('\n'), after.split('\n')]
  let [start, end] = [0, 0]
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++
  const [gone, come] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  if (gone.length > MAX_LINES || come.length > MAX_LINES) {
    return [...gone.map((line) => `- ${line}`), ...come.map((line) => `+ ${line}`)]
  }
  return fromTable(gone, come)
}

/** By the longest common subsequence of lines. */
function fromTable(gone: readonly string[], come: readonly string[]): readonly string[] {
  const lengths = Array.from({ length: gone.length + 1 }, () => new Uint16Array(come.length + 1))
  for (let i = gone.length - 1; i >= 0; i--) {
    for (let j = come.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        gone[i] === come[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
    }
  }
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < gone.length || j < come.length) {
    if (i < gone.length && j < come.length && gone[i] === come[j]) [i, j] = [i + 1, j + 1]
    else if (j >= come.length || (i < gone.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!))
      lines.push(`- ${gone[i++]}`)
    else lines.push(`+ ${come[j++]}`)
  }
  return lines
}
