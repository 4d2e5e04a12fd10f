import type { Run } from '../agent/run.ts'
import { usageOf } from './summary.ts'

/** The last line of `--json`: how the run ended, in one object. */
export function resultLine(run: Run<unknown>): object {
  const base = { type: 'result', status: run.status, text: run.text, usage: usageOf(run) }
  switch (run.status) {
    case 'completed':
      return typeof run.output === 'string' ? base : { ...base, output: run.output }
    case 'stopped':
      return { ...base, reason: run.reason, by: run.by, message: run.final.message }
    case 'failed':
      return { ...base, reason: run.final.reason, error: { code: run.error.code, message: run.error.message } }
    case 'cancelled':
      return { ...base, reason: run.final.reason }
    case 'suspended':
      return { ...base, pending: run.pending }
    default:
      return run satisfies never
  }
}
