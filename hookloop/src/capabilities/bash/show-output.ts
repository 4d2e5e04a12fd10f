import type { CappedText, OutputCap } from '../../system/processes/capped-output.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import type { ProcessResult } from '../../system/processes/run-process.ts'

/** How many characters of the start and the end of the output the model gets. */
export type OutputWindow = { readonly headChars: number; readonly tailChars: number }

/** A UTF-16 code unit has at most three bytes in UTF-8. */
export function capFor({ headChars, tailChars }: OutputWindow): OutputCap {
  return { head: 3 * headChars, tail: 3 * tailChars }
}

/** The result of a command as text for the model. */
export function showResult(
  result: ProcessResult,
  window: OutputWindow,
  { timeoutMs }: { readonly timeoutMs: number },
): string {
  const errors = windowOf(result.stderr, share(window, 1 / 3))
  const output = windowOf(result.stdout, withoutUsed(window, errors.length))
  const lines = [
    ...ending(result, timeoutMs),
    ...(output === '' ? [] : [output.replace(/\n$/, '')]),
    ...(errors === '' ? [] : ['STDERR:', errors.replace(/\n$/, '')]),
  ]
  if (output === '' && errors === '') lines.push('(no output)')
  return lines.join('\n')
}

function ending(result: ProcessResult, timeoutMs: number): readonly string[] {
  const { ended, exitCode, signal, leftBehind, problem } = result
  const lines: string[] = []
  const isWhole = problem === undefined // no process is left
  const wasEnded = isWhole ? 'ended with all its processes' : 'ended'
  if (ended === 'timedOut') lines.push(`The command did not end within ${timeoutMs} ms. It was ${wasEnded}.`)
  else if (ended === 'cancelled') lines.push(`The command was cancelled, and ${wasEnded}.`)
  else if (signal !== null) lines.push(`Ended by signal: ${signal}`)
  else if (exitCode !== 0) lines.push(`Exit code: ${exitCode ?? 'unknown'}`)
  if (isWhole && leftBehind) lines.push('Its background processes were ended with it.')
  if (!isWhole) lines.push(problem)
  if (ended === 'timedOut') lines.push('Output so far:')
  return lines
}

/** The window for stdout after stderr has its part: at least two thirds. */
function withoutUsed(window: OutputWindow, used: number): OutputWindow {
  const total = window.headChars + window.tailChars
  return share(window, Math.max(2 / 3, (total - used) / total))
}

function share({ headChars, tailChars }: OutputWindow, part: number): OutputWindow {
  return { headChars: Math.floor(headChars * part), tailChars: Math.floor(tailChars * part) }
}

/** The head and the tail of a text, with a line between them that says how many bytes are missing. */
function windowOf(text: CappedText, { headChars, tailChars }: OutputWindow): string {
  if (text.droppedBytes === 0 && text.head.length <= headChars + tailChars) return sanitizeText(text.head)
  const head = cutEnd(text.head, headChars)
  const tail = cutStart(text.droppedBytes === 0 ? text.head : text.tail, tailChars)
  const missing = text.totalBytes - Buffer.byteLength(head) - Buffer.byteLength(tail)
  return `${sanitizeText(head)}\n[… ${missing} bytes left out …]\n${sanitizeText(tail)}`
}

/** Never cuts a surrogate pair. */
function cutEnd(text: string, length: number): string {
  const cut = text.slice(0, length)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

function cutStart(text: string, length: number): string {
  const cut = length === 0 ? '' : text.slice(-length)
  return cut.isWellFormed() ? cut : cut.slice(1)
}
