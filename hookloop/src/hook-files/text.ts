/** The value if it is a string, otherwise an empty string. */
export function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
