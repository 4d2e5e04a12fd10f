/** A function that runs once, with its first call, and returns the same result to all. */
export function once<T>(work: () => T): () => T {
  let result: { readonly value: T } | undefined
  return () => (result ??= { value: work() }).value
}
