import { inspect } from 'node:util'
import type { Run } from '../../agent/run.ts'
import { usageOf } from './summary.ts'

/** The last line of `--json`: how the run ended, in one object, and the session it is kept in. */
export function resultLine(run: Run<unknown>, session?: string): object {
  const base = {
    type: 'result',
    status: run.status,
    text: run.text,
    usage: usageOf(run),
    ...(session !== undefined && { session }),
  }
  switch (run.status) {
    case 'completed':
      return run.output === run.text ? base : { ...base, output: JSON.parse(jsonText(run.output)) as unknown }
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

/** Any value as JSON: what a schema makes of an answer may be anything. What JSON cannot say is described. */
export function jsonText(value: unknown, indent?: number): string {
  try {
    const text = JSON.stringify(
      value,
      (_key, part: unknown) => (typeof part === 'bigint' ? String(part) : part),
      indent,
    )
    return harmless(text ?? JSON.stringify(inspect(value)))
  } catch {
    return harmless(JSON.stringify(inspect(value))) // it holds itself
  }
}

/** The same JSON. A terminal obeys some characters that JSON lets through as they are. */
function harmless(text: string): string {
  return text.replace(/[\u007F-\u009F]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)
}
