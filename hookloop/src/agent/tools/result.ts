import { toJson, toSizedJson } from '../../state/json.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { messageOf } from '../../errors.ts'
import type { Redact } from '../capability.ts'

/** What the model reads when a tool returned nothing. */
export const noOutput = '(no output)'

const MAX_FAILURE_CHARS = 65_536

/** What a tool returned, as something a model can read: JSON, of bounded size, never nothing. */
export function toExecution(
  value: unknown,
  { maxChars, redact }: { readonly maxChars: number; readonly redact: Redact | undefined },
): ToolExecution {
  if (value === undefined) return Object.freeze({ status: 'ok', output: noOutput })
  if (redact !== undefined) return redacted(value, maxChars, redact)
  if (typeof value === 'string') return capped(value, value, maxChars)
  if (typeof value === 'number' || typeof value === 'boolean')
    return Object.freeze({ status: 'ok', output: toJson(value) })
  try {
    const { json, size } = toSizedJson(value)
    // The size is rough, but never less than an eighth of the text: only what may be too long is written out to know.
    return size * 8 <= maxChars
      ? Object.freeze({ status: 'ok', output: json })
      : capped(json, JSON.stringify(json), maxChars)
  } catch (error) {
    return failedExecution(`The tool ran, but what it returned cannot be shown. ${messageOf(error)}`)
  }
}

/** Before it is cut to size: half of a key is not known as one. */
function redacted(value: unknown, maxChars: number, redact: Redact): ToolExecution {
  try {
    const output = toJson(redact(toJson(value)))
    return capped(output, typeof output === 'string' ? output : JSON.stringify(output), maxChars)
  } catch (error) {
    return failedExecution(`The tool ran, but what it returned cannot be shown. ${messageOf(error)}`)
  }
}

/** The words are those of whoever threw, so they are of bounded size as well. */
export function failedExecution(message: string, maxChars = MAX_FAILURE_CHARS): ToolExecution {
  if (message.length <= maxChars) return Object.freeze({ status: 'failed', output: message })
  return Object.freeze({ status: 'failed', output: shortened(message, maxChars), truncated: true })
}

export function blockedExecution(by: string, message: string): ToolExecution {
  return Object.freeze({ status: 'blocked', output: message, by })
}

/** A call that had not started when somebody stopped the run. */
export function stoppedExecution(by?: { readonly source: string; readonly message: string }): ToolExecution {
  if (by === undefined) return blockedExecution('hookloop', 'Not run: the run ended first.')
  return blockedExecution(by.source, `Not run: the run was stopped by "${by.source}": ${by.message}`)
}

/** The same execution with its output kept back: what ran, ran, and that is what its status says. */
export function withheldExecution(execution: ToolExecution, by: string, message: string): ToolExecution {
  return Object.freeze({ status: execution.status, output: `[withheld by "${by}": ${message}]`, by, withheld: true })
}

/** Long output keeps its head and its tail: errors come last, what was asked for comes first. */
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
