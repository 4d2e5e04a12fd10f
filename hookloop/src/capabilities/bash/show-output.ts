import type { CappedText, OutputCap } from '../../system/processes/capped-output.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import type { ProcessResult } from '../../system/processes/run-process.ts'

/** How much of the output a model is shown, in characters: of its beginning and of its end. */
export type Shown = { readonly headChars: number; readonly tailChars: number }

/** A character of JavaScript has at most three bytes, so this is enough to show as much as may be shown. */
export function capFor({ headChars, tailChars }: Shown): OutputCap {
  return { head: 3 * headChars, tail: 3 * tailChars }
}

/** How a command ended and what it wrote, as a model reads it. */
export function showResult(result: ProcessResult, shown: Shown, { timeoutMs }: { readonly timeoutMs: number }): string {
  const errors = windowOf(result.stderr, share(shown, 1 / 3))
  const output = windowOf(result.stdout, withoutUsed(shown, errors.length))
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
  if (ended === 'timedOut') {
    lines.push(`The command did not end within ${timeoutMs} ms. It was ended with everything it had started.`)
    lines.push('Output so far:')
  } else if (ended === 'cancelled') lines.push('The command was cancelled, and ended with everything it had started.')
  else if (signal !== null) lines.push(`Ended by signal: ${signal}`)
  else if (exitCode !== 0) lines.push(`Exit code: ${exitCode ?? 'unknown'}`)
  if (leftBehind === 1) lines.push('One process that it left in the background was ended with it.')
  if (leftBehind > 1) lines.push(`${leftBehind} processes that it left in the background were ended with it.`)
  if (problem !== undefined) lines.push(problem)
  return lines
}

/** What is left of the space for the output when the errors have theirs: never less than two thirds. */
function withoutUsed(shown: Shown, used: number): Shown {
  const total = shown.headChars + shown.tailChars
  return share(shown, Math.max(2 / 3, (total - used) / total))
}

function share({ headChars, tailChars }: Shown, part: number): Shown {
  return { headChars: Math.floor(headChars * part), tailChars: Math.floor(tailChars * part) }
}

/** Head and tail of a text with one line between them that says what is missing, in bytes, as it was written. */
function windowOf(text: CappedText, { headChars, tailChars }: Shown): string {
  if (text.droppedBytes === 0 && text.head.length <= headChars + tailChars) return sanitizeText(text.head)
  const head = cutEnd(text.head, headChars)
  const tail = cutBeginning(text.droppedBytes === 0 ? text.head : text.tail, tailChars)
  const missing = text.totalBytes - Buffer.byteLength(head) - Buffer.byteLength(tail)
  return `${sanitizeText(head)}\n[… ${missing} bytes left out …]\n${sanitizeText(tail)}`
}

/** Never between the two halves of a character. */
function cutEnd(text: string, length: number): string {
  const cut = text.slice(0, length)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

function cutBeginning(text: string, length: number): string {
  const cut = length === 0 ? '' : text.slice(-length)
  return cut.isWellFormed() ? cut : cut.slice(1)
}
