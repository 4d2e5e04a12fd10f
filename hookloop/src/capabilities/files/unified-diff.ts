import { createRequire } from 'node:module'

const CONTEXT = 3
const MAX_CHARS = 16_000
const MAX_MS = 500

/** What changed, as a unified diff of bounded size. What both texts have at their ends is not compared. */
export function unifiedDiff(path: string, before: string, after: string): string {
  const start = contextBefore(before, commonStart(before, after))
  const tail = contextAfter(before, commonEnd(before, after, start))
  const middle = (text: string): string => text.slice(start, text.length - tail)
  const line = linesIn(before.slice(0, start))
  // Loaded on first use: an agent that only reads needs none.
  const { structuredPatch, formatPatch, FILE_HEADERS_ONLY } = createRequire(import.meta.url)(
    'diff',
  ) as typeof import('diff')
  const patch = structuredPatch(path, path, middle(before), middle(after), undefined, undefined, {
    context: CONTEXT,
    timeout: MAX_MS,
  })
  if (patch === undefined)
    return `[The change is too large to be shown: ${linesIn(before)} lines before, ${linesIn(after)} after.]`
  for (const hunk of patch.hunks) {
    hunk.oldStart += line
    hunk.newStart += line
  }
  const text = formatPatch(patch, FILE_HEADERS_ONLY).replace(/\n$/, '')
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}\n[… the diff goes on]`
}

function commonStart(before: string, after: string): number {
  const most = Math.min(before.length, after.length)
  let count = 0
  while (count < most && before.charCodeAt(count) === after.charCodeAt(count)) count++
  return count
}

function commonEnd(before: string, after: string, start: number): number {
  const most = Math.min(before.length, after.length) - start
  let count = 0
  while (count < most && before.charCodeAt(before.length - 1 - count) === after.charCodeAt(after.length - 1 - count)) {
    count++
  }
  return count
}

/** Where a diff of what comes here begins: some lines before, at the beginning of a line. */
function contextBefore(text: string, at: number): number {
  let start = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
  for (let lines = 0; lines < CONTEXT && start > 0; lines++)
    start = start < 2 ? 0 : text.lastIndexOf('\n', start - 2) + 1
  return start
}

/** How many of the characters that two texts have in common at their ends are not part of a diff. */
function contextAfter(text: string, common: number): number {
  let end = text.length - common
  for (let lines = 0; lines <= CONTEXT; lines++) {
    const newline = text.indexOf('\n', end)
    if (newline === -1) return 0
    end = newline + 1
  }
  return text.length - end
}

function linesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}
