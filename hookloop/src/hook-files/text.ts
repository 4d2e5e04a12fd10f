import type { Json } from '../state/json.ts'

/** The value if it is a string, otherwise an empty string. */
export function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A string as it is, and any other value as JSON. */
export function toText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
