const stored = new Map<string, Readonly<Record<string, string>>>()

const MAX_STORED = 1_000

/**
 * Stores environment variables for the commands of a session in this process, and returns the id to read them by (generated if
 * omitted). Only the id goes into the agent's state: variables may be secret, and a state from elsewhere must not decide
 * which environment a command gets.
 */
export function setSessionVariables(
  variables: Readonly<Record<string, string>>,
  id: string = crypto.randomUUID(),
): string {
  stored.delete(id) // moves it to the end: the oldest is dropped first
  stored.set(id, Object.freeze({ ...variables }))
  for (const oldest of stored.keys()) {
    if (stored.size <= MAX_STORED) break
    stored.delete(oldest)
  }
  return id
}

/** The variables stored under an id; empty if this process has none. */
export function getSessionVariables(id: unknown): Readonly<Record<string, string>> {
  return (typeof id === 'string' ? stored.get(id) : undefined) ?? {}
}
