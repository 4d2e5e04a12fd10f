import { sanitizeText } from '../../system/sanitize-text.ts'
import type { ProcessOutput } from '../../system/processes/run-process.ts'

/** What is told of the output while a command runs. `skipped` characters came before `text` and are not told. */
export type BashProgress = ProcessOutput & { readonly skipped?: number }

const EVERY_MS = 100
const MOST_CHARS = 8_192

/**
 * Tells output as it comes, at most ten times a second and a screenful at a time: a program that floods must not flood those
 * who watch. `end` tells the rest.
 */
export function streamProgress(tell: (progress: BashProgress) => void): {
  readonly onOutput: (output: ProcessOutput) => void
  readonly end: () => void
} {
  const waiting = { stdout: { text: '', skipped: 0 }, stderr: { text: '', skipped: 0 } }
  let timer: NodeJS.Timeout | undefined
  let toldAt = -Infinity

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    toldAt = performance.now()
    for (const stream of ['stdout', 'stderr'] as const) {
      const { text, skipped } = waiting[stream]
      waiting[stream] = { text: '', skipped: 0 }
      if (text !== '') tell({ stream, text: sanitizeText(text), ...(skipped > 0 && { skipped }) })
    }
  }
  return {
    onOutput({ stream, text }) {
      const all = waiting[stream].text + text
      const kept = all.slice(-MOST_CHARS)
      waiting[stream] = { text: kept, skipped: waiting[stream].skipped + all.length - kept.length }
      const due = toldAt + EVERY_MS - performance.now()
      if (due <= 0) flush()
      else timer ??= setTimeout(flush, due).unref()
    },
    end: flush,
  }
}
