import { FILE_HEADERS_ONLY, formatPatch, structuredPatch } from 'diff'
import { countOf } from './replace-text.ts'

const CONTEXT = 3
const MAX_CHARS = 16_000
const MAX_MS = 500

/** A unified diff of limited size. Equal text at both ends is skipped, so that a small change of a large file is cheap. */
export function unifiedDiff(path: string, before: string, after: string): string {
  const most = Math.min(before.length, after.length)
  let [start, end] = [0, 0]
  while (start < most && before.charCodeAt(start) === after.charCodeAt(start)) start++
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++
  end = before.length - end
  // To the start and the end of the line, and some lines further.
  for (let lines = 0; lines <= CONTEXT; lines++) {
    start = start > 0 ? before.lastIndexOf('\n', start - 1) : -1
    end = before.indexOf('\n', end) + 1 || before.length
  }
  const tail = before.length - end
  const middle = (text: string): string => text.slice(start + 1, text.length - tail)
  const skipped = countOf(before.slice(0, start + 1), '\n')
  const patch = structuredPatch(path, path, middle(before), middle(after), undefined, undefined, {
    context: CONTEXT,
    timeout: MAX_MS,
  })
  if (patch === undefined)
    return `[The change is too large to show: ${countOf(before, '\n')} lines before, ${countOf(after, '\n')} after.]`
  for (const hunk of patch.hunks) {
    hunk.oldStart += skipped
    hunk.newStart += skipped
  }
  const text = formatPatch(patch, FILE_HEADERS_ONLY).replace(/\n$/, '')
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}\n[… the diff continues]`
}
