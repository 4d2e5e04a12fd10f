/** The command line, or something it names, is wrong. Nothing was run, and the words say what to type instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
