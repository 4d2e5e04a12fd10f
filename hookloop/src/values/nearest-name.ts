const MAX_DISTANCE = 2

/** The known name that was probably meant by an unknown one, for "Did you mean …?". */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const typed = name.toLowerCase()
  let best: { readonly known: string; readonly distance: number } | undefined
  for (const each of known) {
    const distance = distanceBetween(typed, each.toLowerCase())
    if (best === undefined || distance < best.distance) best = { known: each, distance }
  }
  if (best === undefined || best.distance > MAX_DISTANCE || best.distance >= typed.length / 2) return undefined
  return best.known
}

/** The Levenshtein distance, in which two exchanged letters count as one mistake. */
function distanceBetween(from: string, to: string): number {
  let before: readonly number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, letter] of from.split('').entries()) {
    const next = [i + 1]
    for (let j = 1; j <= to.length; j++) {
      const replaced = row[j - 1]! + (letter === to[j - 1] ? 0 : 1)
      const isExchanged = i > 0 && j > 1 && letter === to[j - 2] && from[i - 1] === to[j - 1]
      const exchanged = isExchanged ? before[j - 2]! + 1 : Infinity
      next.push(Math.min(replaced, exchanged, row[j]! + 1, next[j - 1]! + 1))
    }
    before = row
    row = next
  }
  return row[to.length]!
}
