import { inspect } from 'node:util'
import type { Output } from './screen.ts'

/** Prints a value as indented JSON. */
export function printJson(out: Output, value: unknown): void {
  out.write(`${jsonText(value, 2)}\n`)
}

/** Any value as JSON. A typed answer can be anything, so what JSON cannot represent is described as text. */
export function jsonText(value: unknown, indent?: number): string {
  try {
    const text = JSON.stringify(
      value,
      (_key, part: unknown) => (typeof part === 'bigint' ? String(part) : part),
      indent,
    )
    return escapeControls(text ?? JSON.stringify(inspect(value)))
  } catch {
    return escapeControls(JSON.stringify(inspect(value))) // a cyclic value
  }
}

/** The same JSON without the control characters that JSON.stringify() does not escape and a terminal obeys. */
function escapeControls(text: string): string {
  return text.replace(/[\u007F-\u009F]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`)
}
