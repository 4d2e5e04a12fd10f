/** Whether a text can be the id of a turn. */
export function isId(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value.length <= 256 && value.isWellFormed()
}
