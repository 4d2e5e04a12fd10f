/** Variables of conversations that this process leads. */
const kept = new Map<string, Readonly<Record<string, string>>>()

const MAX_KEPT = 1_000

/**
 * Keeps variables for the commands of a conversation, and gives the name under which `keptEnvironment` finds them; one that a
 * conversation has already may be given. Only the
 * name goes into a state: variables may be secret, and a state from elsewhere must not decide what a command runs with.
 */
export function keepEnvironment(
  variables: Readonly<Record<string, string>>,
  name: string = crypto.randomUUID(),
): string {
  kept.delete(name) // what is said last is forgotten last
  kept.set(name, Object.freeze({ ...variables }))
  for (const oldest of kept.keys()) {
    if (kept.size <= MAX_KEPT) break
    kept.delete(oldest)
  }
  return name
}

/** What was kept under a name; nothing where this process knows none like it. */
export function keptEnvironment(name: unknown): Readonly<Record<string, string>> {
  return (typeof name === 'string' ? kept.get(name) : undefined) ?? {}
}
