import { exact } from './printable.ts'

/** A value quoted for a shell, on one line, with invisible characters made visible. */
export function shellQuote(value: string): string {
  const shown = exact(value).replaceAll('\n', '\\n')
  return /^[\w./:@%+=,-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`
}
