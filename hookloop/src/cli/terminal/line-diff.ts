import { diff } from 'node:util'

/** The comparison takes quadratic time. */
const MAX_LINES = 2_000

/** The lines that differ between two texts: `-` was removed, `+` was added. */
export function lineDiff(before: string, after: string): readonly string[] {
  const [removed, added] = [before.split('\n'), after.split('\n')]
  if (removed.length > MAX_LINES || added.length > MAX_LINES) {
    return [...removed.map((line) => `- ${line}`), ...added.map((line) => `+ ${line}`)]
  }
  return diff(removed, added).flatMap(([kind, line]) => (kind === 0 ? [] : [`${kind === 1 ? '-' : '+'} ${line}`]))
}
