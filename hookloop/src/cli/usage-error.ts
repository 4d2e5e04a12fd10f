/** The command line, or a file or model that it names, is wrong. Nothing was run. The message says what to type instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
