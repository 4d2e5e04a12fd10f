import { describeValue } from '../../values/describe-value.ts'
import { toJson, toSizedJson, textOfJson } from '../../values/json.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { messageOf } from '../../errors.ts'
import type { Redact } from '../agent/capability.ts'

/** What the model gets when a tool returned nothing. */
export const noOutput = '(no output)'

const MAX_FAILURE_CHARS = 65_536

/** What a tool returned, as the model gets it: JSON of limited size, and never empty. */
export function toExecution(
  value: unknown,
  { maxChars, redact }: { readonly maxChars: number; readonly redact: Redact | undefined },
): ToolExecution {
  if (value === undefined) return Object.freeze({ status: 'ok', output: noOutput })
  if (value instanceof Error)
    return failedExecution(redact === undefined ? value.message : (redact(value.message) as string), maxChars)
  if (typeof value === 'function' || typeof value === 'symbol')
    return failedExecution(`The tool ran, but its result is ${describeValue(value)}, which is not JSON.`)
  if (redact !== undefined) return redacted(value, maxChars, redact)
  if (typeof value === 'string') return capped(value, value, maxChars)
  if (typeof value === 'number' || typeof value === 'boolean')
    return Object.freeze({ status: 'ok', output: toJson(value) })
  try {
    const { json, size } = toSizedJson(value)
    // The size is an estimate, never less than an eighth of the text: only a value that may be too long is serialized.
    return size * 8 <= maxChars
      ? Object.freeze({ status: 'ok', output: json })
      : capped(json, JSON.stringify(json), maxChars)
  } catch (error) {
    return failedExecution(`The tool ran, but its result cannot be converted to JSON. ${messageOf(error)}`)
  }
}

/** Redacts before truncating: half of a secret is not recognized. */
function redacted(value: unknown, maxChars: number, redact: Redact): ToolExecution {
  try {
    const output = toJson(redact(toJson(value)))
    return capped(output, textOfJson(output), maxChars)
  } catch (error) {
    return failedExecution(`The tool ran, but its result cannot be converted to JSON. ${messageOf(error)}`)
  }
}

/** A failure. The message may come from user code, so its size is limited as well. */
export function failedExecution(message: string, maxChars = MAX_FAILURE_CHARS): ToolExecution {
  if (message.length <= maxChars) return Object.freeze({ status: 'failed', output: message })
  return Object.freeze({ status: 'failed', output: shortened(message, maxChars), truncated: true })
}

export function blockedExecution(by: string, message: string): ToolExecution {
  return Object.freeze({ status: 'blocked', output: message, by })
}

/** A call that had not started when the run was stopped. */
export function stoppedExecution(by?: { readonly source: string; readonly message: string }): ToolExecution {
  if (by === undefined) return rejectedExecution(blockedExecution('hookloop', 'Not run: the run ended first.'))
  return rejectedExecution(blockedExecution(by.source, `Not run: the run was stopped by "${by.source}": ${by.message}`))
}

/** A call that did not run, without a decision about it. */
export function rejectedExecution(execution: ToolExecution): ToolExecution {
  return Object.freeze({ ...execution, rejected: true })
}

/** Truncated output keeps its start and its end, where errors usually are. */
function capped(output: ToolExecution['output'], text: string, maxChars: number): ToolExecution {
  if (text.length <= maxChars) return Object.freeze({ status: 'ok', output })
  return Object.freeze({ status: 'ok', output: shortened(text, maxChars), truncated: true })
}

function shortened(text: string, maxChars: number): string {
  const head = Math.ceil(maxChars / 4)
  const tail = maxChars - head
  const cut = text.length - head - tail
  return `${text.slice(0, head)}\n[… ${cut} characters left out …]\n${text.slice(text.length - tail)}`.toWellFormed()
}
