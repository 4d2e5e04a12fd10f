import { inspect } from 'node:util'
import { escapeInJson } from '../../system/sanitize-text.ts'
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
    return escapeInJson(text ?? JSON.stringify(inspect(value)))
  } catch {
    return escapeInJson(JSON.stringify(inspect(value))) // a cyclic value
  }
}
