import { createRequire } from 'node:module'

const CONTEXT = 3
const MAX_CHARS = 16_000
const MAX_MS = 500

/** What changed, as a unified diff of bounded size. What both texts have at their ends is not compared. */
export function unifiedDiff(path: string, before: string, after: string): string {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const start = Math.max(0, commonStart(old, now) - CONTEXT)
  const end = Math.max(0, commonEnd(old, now, start) - CONTEXT)
  const middle = (lines: readonly string[]): string =>
    lines.slice(start, lines.length - end).join('\n') + (end > 0 ? '\n' : '')
  // Loaded on first use: an agent that only reads needs none.
  const { structuredPatch, formatPatch, FILE_HEADERS_ONLY } = createRequire(import.meta.url)(
    'diff',
  ) as typeof import('diff')
  const patch = structuredPatch(path, path, middle(old), middle(now), undefined, undefined, {
    context: CONTEXT,
    timeout: MAX_MS,
  })
  if (patch === undefined)
    return `[The change is too large to be shown: ${old.length} lines before, ${now.length} after.]`
  for (const hunk of patch.hunks) {
    hunk.oldStart += start
    hunk.newStart += start
  }
  const text = formatPatch(patch, FILE_HEADERS_ONLY).replace(/\n$/, '')
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}\n[… the diff goes on]`
}

function commonStart(old: readonly string[], now: readonly string[]): number {
  let count = 0
  while (count < old.length && count < now.length && old[count] === now[count]) count++
  return count
}

function commonEnd(old: readonly string[], now: readonly string[], start: number): number {
  const most = Math.min(old.length, now.length) - start
  let count = 0
  while (count < most && old[old.length - 1 - count] === now[now.length - 1 - count]) count++
  return count
}
