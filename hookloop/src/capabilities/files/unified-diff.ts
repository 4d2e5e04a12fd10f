import { createRequire } from 'node:module'

const CONTEXT = 3
const MAX_CHARS = 16_000
const MAX_MS = 500

/** A unified diff of limited size. Equal text at both ends is skipped, so that a small change of a large file is cheap. */
export function unifiedDiff(path: string, before: string, after: string): string {
  const start = contextBefore(before, commonStart(before, after))
  const tail = contextAfter(before, commonEnd(before, after, start))
  const middle = (text: string): string => text.slice(start, text.length - tail)
  const line = linesIn(before.slice(0, start))
  // Loaded on first use: an agent that only reads does not need it.
  const { structuredPatch, formatPatch, FILE_HEADERS_ONLY } = createRequire(import.meta.url)(
    'diff',
  ) as typeof import('diff')
  const patch = structuredPatch(path, path, middle(before), middle(after), undefined, undefined, {
    context: CONTEXT,
    timeout: MAX_MS,
  })
  if (patch === undefined)
    return `[The change is too large to show: ${linesIn(before)} lines before, ${linesIn(after)} after.]`
  for (const hunk of patch.hunks) {
    hunk.oldStart += line
    hunk.newStart += line
  }
  const text = formatPatch(patch, FILE_HEADERS_ONLY).replace(/\n$/, '')
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}\n[… the diff continues]`
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

/** The start of the context: some lines before, at the start of a line. */
function contextBefore(text: string, at: number): number {
  let start = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
  for (let lines = 0; lines < CONTEXT && start > 0; lines++)
    start = start < 2 ? 0 : text.lastIndexOf('\n', start - 2) + 1
  return start
}

/** How many equal characters at the end are not part of the context. */
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
