import { sanitizeText } from '../../system/sanitize-text.ts'
import type { ProcessOutput } from '../../system/processes/run-process.ts'

/** Output of a running command, as a `toolProgress` event. `skipped` characters before `text` are left out. */
export type BashProgress = ProcessOutput & { readonly skipped?: number }

const INTERVAL_MS = 100
const MAX_CHARS = 8_192

/** Reports output at most ten times a second, with a limited size, so that a flood of output is no flood of events. `end` reports the rest. */
export function streamProgress(report: (progress: BashProgress) => void): {
  readonly onOutput: (output: ProcessOutput) => void
  readonly end: () => void
} {
  const pending = { stdout: { text: '', skipped: 0 }, stderr: { text: '', skipped: 0 } }
  let timer: NodeJS.Timeout | undefined
  let reportedAt = -Infinity

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    reportedAt = performance.now()
    for (const stream of ['stdout', 'stderr'] as const) {
      const { text, skipped } = pending[stream]
      pending[stream] = { text: '', skipped: 0 }
      if (text !== '') report({ stream, text: sanitizeText(text), ...(skipped > 0 && { skipped }) })
    }
  }
  return {
    onOutput({ stream, text }) {
      const all = pending[stream].text + text
      const recent = all.slice(-MAX_CHARS)
      pending[stream] = { text: recent, skipped: pending[stream].skipped + all.length - recent.length }
      const due = reportedAt + INTERVAL_MS - performance.now()
      if (due <= 0) flush()
      else timer ??= setTimeout(flush, due).unref()
    },
    end: flush,
  }
}
